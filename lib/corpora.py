"""List the corpora, or count what is in one.

python -m lib.corpora                # names, sizes, licences, splits, and how to get each: a Markdown table
python -m lib.corpora sumpubmed      # what stands in data/sumpubmed: counts by split, what was left out and why
python -m lib.corpora FOLDER

A folder of text whose words are set apart by spaces says so in its corpus.json: {"tokenised": true}
"""

import sys

from lib.data.catalogue import CLUSTERS, HUB, MANUAL, SAMPLE, ByHand, HubCorpus
from lib.data.corpora import load_corpus
from lib.data.documents import SPLITS, CorpusError
from lib.system.command_line import plain_errors

INSTALLED = {
    "aclsum": ("250 papers of the ACL Anthology", "the package MIT; the papers their authors'", "100, 50 and 100"),
    CLUSTERS: (
        "the same, each paper a cluster of its paragraphs",
        "the package MIT; the papers their authors'",
        "100, 50 and 100",
    ),
    SAMPLE: ("150 biomedical papers of PubMed Central", "CC BY or CC0, each its own", "30, 20 and 100"),
    "docstrings": (
        "first lines and bodies of docstrings of ten Python packages",
        "BSD or MIT, each package's",
        "6,306, 640 and 1,494",
    ),
}


def table() -> str:
    """All corpora as Markdown."""
    lines = ["| name | what | licence | splits | to get it |", "|---|---|---|---|---|"]
    lines += [
        f"| `{name}` | {' | '.join(known)} | comes with the installation |" for name, known in INSTALLED.items()
    ]
    for name, hub in HUB.items():
        how = f"by itself from the Hub, `{hub.repository}`. {hub.note}".strip()
        lines.append(f"| `{name}` | {hub.what}{_form(hub)} | its owners' | its owners' | {how} |")
    for name, corpus in MANUAL.items():
        said = (corpus.size + _form(corpus), corpus.licence, corpus.splits, corpus.how)
        lines.append(f"| `{name}` | {' | '.join(said)} |")
    return "\n".join(lines)


def _form(corpus: HubCorpus | ByHand) -> str:
    return ", tokenised" if corpus.tokenised else ""


def contents(dataset: str) -> str:
    """Documents, sentences and words of each split, and what was left out. Raises CorpusError."""
    corpus, lines = load_corpus(dataset, errors="skip"), []
    for split_name in SPLITS:
        counts = [0, 0, 0, 0]
        try:
            for document in corpus.split(split_name):
                words = (sum(len(s.split()) for s in part) for part in (document.sentences, document.summary))
                counts = [a + b for a, b in zip(counts, (1, len(document.sentences), *words))]
        except CorpusError as error:
            lines.append(f"{split_name}: {error}")
            continue
        sentences, words, summary = (f"{n / counts[0]:,.0f}" for n in counts[1:])
        means = f"in the mean {words} words in {sentences} sentences, {summary} of summary"
        lines.append(f"{split_name}: {counts[0]:,} documents, {means}")
    return "\n".join([*lines, corpus.report()])


def main(arguments: list[str]) -> int:
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return int(len(arguments) > 1)
    with plain_errors():
        print(contents(arguments[0]) if arguments else table())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
