"""One self-contained HTML page in which the models of the towns write about paragraphs that a reader changes."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from companion.live.page import LAYERS, live_page, module_name, packed, scripts
from companion.tasks.town_clusters import FACT_PLACES, TOWN_PIECES, TOWNS, VALUES, TownCluster
from lib.data.vocabulary import CLUSTER_SYMBOLS, SPECIALS
from lib.decoding.search import DecodeConfig
from lib.models.hierarchical_transformer import HierarchicalTransformer
from lib.system.files import write_whole

MODEL = module_name(HierarchicalTransformer)
SCRIPTS = (*LAYERS, "transformer", MODEL, "town_facts")


def write_towns_page(
    path: str | Path, models: Sequence[HierarchicalTransformer], clusters: Sequence[TownCluster], decode: DecodeConfig
) -> Path:
    """Write the page of two models, of which the second one has no global layers, and of the clusters that it offers.

    Both models are of the form "code", without dropout.
    """
    code, data = scripts(*SCRIPTS, "reader", "towns_page"), towns_data(models, clusters, decode)
    return write_whole(path, live_page("towns", "two towns", MODEL, code, data, ("base", "page", "towns")))


def towns_data(
    models: Sequence[HierarchicalTransformer], clusters: Sequence[TownCluster], decode: DecodeConfig
) -> dict[str, Any]:
    """Collect what the scripts need: models, vocabulary, rules of the search, what facts can be, clusters."""
    return {
        "models": [{"config": asdict(m.config), "weights": packed(m.state_dict(), 32)} for m in models],
        "words": TOWN_PIECES.words,
        "symbols": len(SPECIALS) + len(CLUSTER_SYMBOLS),
        "decode": asdict(decode),
        "towns": TOWNS,
        "values": VALUES,
        "places": FACT_PLACES,
        "clusters": [
            {**dict(zip(("title", "other"), cluster.truth)), "paragraphs": [p.text for p in cluster.paragraphs]}
            for cluster in clusters
        ],
    }
