"""List the corpora, or count the documents of one.

    python -m lib.corpora                # a table: names, sizes, licences, and how to get each
    python -m lib.corpora sumpubmed      # counts of data/sumpubmed, what was left out and why
    python -m lib.corpora FOLDER
    python -m lib.corpora NAME:FOLDER    # a corpus as its owners release it

The exit status is 1 if a split cannot be read to its end or has no document.

A folder whose texts are already cut into words needs a file corpus.json: {"tokenised": true}
"""

import re
import sys
from collections import Counter
from functools import partial

from lib.data.corpora import load_corpus
from lib.data.documents import SPLITS, CorpusError
from lib.data.registry import CORPORA
from lib.system.command_line import run_command


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
        except CorpusError as error:
            lines.append(f"{split_name}: {error}")
            continue
        documents = corpus.passes[split_name].used
        means = " ".join(f"{total / documents:,.0f} {what}" for what, total in sums.items())
        lines.append(f"{split_name}: {documents:,} documents, in the mean {means}")
    return _named_once("\n".join([*lines, corpus.report()])), corpus.is_read


_MISSING = re.compile(r"no source and summary \(.*?\) among \[.*?\]")


def _named_once(text: str) -> str:
    """Keep the list of known and own columns only where it is new."""
    seen: set[str] = set()

    def shortened(found: re.Match[str]) -> str:
        is_new = found[0] not in seen
        seen.add(found[0])
        return found[0] if is_new else "no source and summary, as before"

    return _MISSING.sub(shortened, text)


def show(corpus: str = "", /) -> int:
    """List the corpora, or count the documents of one; return the exit status.

    Args:
        corpus: a name, a folder or NAME:FOLDER; by default all are listed.
    """
    text, is_read = contents(corpus) if corpus else (table(), True)
    print(text)
    return int(not is_read)


main = partial(run_command, "lib.corpora", __doc__, show)

if __name__ == "__main__":
    sys.exit(main())
