"""One self-contained HTML page in which the models of the towns write about paragraphs that a reader changes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from companion.live.page import LAYERS, framed, packed, script_of, scripts
from companion.tasks.town_clusters import FACT_PLACES, PHRASES, TOWN_PIECES, TOWNS, VALUES, TownCluster
from lib.data.vocabulary import CLUSTER_SYMBOLS, SPECIALS
from lib.decoding.search import DecodeConfig
from lib.models.hierarchical_transformer import HierarchicalTransformer
from lib.system.files import write_whole

MODEL = script_of(HierarchicalTransformer)
SCRIPTS = (*LAYERS, "transformer", MODEL, "town_facts")


def write_towns_page(
    path: str | Path, models: Sequence[HierarchicalTransformer], clusters: Sequence[TownCluster], decode: DecodeConfig
) -> Path:
    """Write the page of two models, of which the second one has no global layers, and of the clusters that it offers.

    Both models are of the form "code", without dropout.
    """
    code, data = scripts(*SCRIPTS, "reader", "towns_page"), towns_data(models, clusters, decode)
    page = framed("towns", "two towns", MODEL, code, data, styles=("page", "towns"))
    return write_whole(path, page)


def towns_data(
    models: Sequence[HierarchicalTransformer], clusters: Sequence[TownCluster], decode: DecodeConfig
) -> dict[str, Any]:
    """What the scripts need: models, vocabulary, rules of the search, what facts can be, clusters."""
    return {
        "models": [model_data(model) for model in models],
        "words": TOWN_PIECES.words,
        "symbols": len(SPECIALS) + len(CLUSTER_SYMBOLS),
        "decode": asdict(decode),
        "towns": TOWNS,
        "values": VALUES,
        "phrases": PHRASES,
        "places": FACT_PLACES,
        "clusters": list(map(_cluster, clusters)),
    }


def model_data(model: HierarchicalTransformer) -> dict[str, Any]:
    return {"config": asdict(model.config), "weights": packed(model.state_dict(), 32)}


def _cluster(cluster: TownCluster) -> Mapping[str, Any]:
    title, other = cluster.truth
    return {"title": title, "other": other, "paragraphs": [paragraph.text for paragraph in cluster.paragraphs]}
