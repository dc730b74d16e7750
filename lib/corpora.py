"""List the corpora, or count the documents of one.

python -m lib.corpora                # names, sizes, licences, splits, and how to get each: a
Markdown table
python -m lib.corpora sumpubmed      # counts of data/sumpubmed by split, what was left out and why
python -m lib.corpora FOLDER
python -m lib.corpora NAME:FOLDER    # a corpus as its owners release it

The exit status is 1 if a split cannot be read to its end or has no document.

A folder whose texts are already cut into words needs a file corpus.json: {"tokenised": true}
"""

import sys
from collections import Counter

from lib.data.corpus import UnusableSplitError, load_corpus
from lib.data.documents import SPLITS, CorpusError
from lib.data.named_corpora import CORPORA
from lib.system.command_line import plain_errors


def table() -> str:
    """All corpora as Markdown."""
    lines = ["| name | what | licence | splits | to get it |", "|---|---|---|---|---|"]
    for name, spec in CORPORA.items():
        if spec.what:
            what = f"{spec.what}, tokenised" if spec.tokenised else spec.what
            how = f"{spec.how}. {spec.note}" if spec.note else spec.how
            lines.append(f"| `{name}` | {what} | {spec.licence} | {spec.splits} | {how} |")
    return "\n".join(lines)


def contents(dataset: str) -> tuple[str, bool]:
    """Documents, sentences and words of each split, and what was left out; and whether every split
    was read.

    Raises CorpusError.
    """
    corpus, lines = load_corpus(dataset, errors="skip"), []
    for split_name in SPLITS:
        sums: Counter[str] = Counter()
        try:
            for document in corpus.split(split_name):
                sums["words in"] += sum(len(s.split()) for s in document.sentences)
                sums["sentences,"] += len(document.sentences)
                sums["of summary"] += sum(len(s.split()) for s in document.summary)
        except UnusableSplitError:
            lines.append(f"{split_name}: no record can be used")  # the report says why
            continue
        except CorpusError as error:
            lines.append(f"{split_name}: {error}")
            continue
        documents = corpus.passes[split_name].used
        means = " ".join(f"{total / documents:,.0f} {what}" for what, total in sums.items())
        lines.append(f"{split_name}: {documents:,} documents, in the mean {means}")
    return "\n".join([*lines, corpus.report()]), corpus.is_read


def main(arguments: list[str]) -> int:
    asks_for_help = len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"])
    with plain_errors():
        if asks_for_help:
            print(__doc__)
            return int(len(arguments) > 1)
        text, is_read = contents(arguments[0]) if arguments else (table(), True)
        print(text)
    return int(not is_read)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
