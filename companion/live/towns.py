"""One self-contained HTML page in which the models of the towns write about paragraphs that a reader changes."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from companion.live.page import LAYERS, PAGE, live_page, module_name, packed, scripts
from companion.tasks.town_clusters import FACT_PLACES, TOWN_PIECES, TOWNS, VALUES, TownCluster
from companion.tasks.towns import open_towns, unseen_towns
from lib.data.vocabulary import CLUSTER_SYMBOLS, SPECIALS
from lib.decoding.search import DecodeConfig
from lib.models.hierarchical_transformer import HierarchicalTransformer
from lib.system.files import write_whole

MODEL = module_name(HierarchicalTransformer)
SCRIPTS = (*LAYERS, "transformer", MODEL, "town_facts")
DECODE = DecodeConfig(beam=1, max_length=30)
OFFERED = 20  # clusters
CAUTION = "The models were trained on invented clusters about two towns. They know nothing else, and err there too."


def write_towns_page(path: Path) -> Path:
    """Write the page of the shipped models, with the first unseen clusters."""
    code = scripts(*SCRIPTS, "elements", f"{MODEL}_page", *PAGE)
    data = towns_data(list(open_towns().values()), unseen_towns(OFFERED))
    return write_whole(path, live_page("page", "two towns", MODEL, code, data))


def towns_data(models: Sequence[HierarchicalTransformer], clusters: Sequence[TownCluster]) -> dict[str, Any]:
    """Collect what the scripts need of two models, of which the second one has no global layers, and of clusters.

    Both models are of the form "code", without dropout.
    """
    model, beside = ({"config": asdict(m.config), "weights": packed(m.state_dict(), 32)} for m in models)
    return {
        **model,
        "caution": CAUTION,
        "beside": beside,
        "words": TOWN_PIECES.words,
        "symbols": len(SPECIALS) + len(CLUSTER_SYMBOLS),
        "decode": asdict(DECODE),
        "towns": TOWNS,
        "values": VALUES,
        "places": FACT_PLACES,
        "papers": [
            {"title": " and ".join(c.truth), "town": c.title, "paragraphs": [p.text for p in c.paragraphs]}
            for c in clusters
        ],
    }
