"""Compare the extract of a memory's heads with other extracts that are as long, and with chance.

    python -m companion.studies.extracts trained/mem2mem --dataset sumpubmed pmc-sample \\
        --output extracts.json
    python -m companion.studies.extracts trained/mem2mem --dataset sumpubmed --reading small \\
        --output chance.json

R-1 rewards an extract that is as long as the reference, so extracts are compared at equal length.
Sentences are taken in a random order, or in LexRank's, until the extract is about as long as that
of the heads. --reading measures only chance, on the text that another preset reads; no run of that
preset is needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rouge_score.rouge_scorer import RougeScorer

import lib
from companion.command import this_command
from companion.stored import effect_row
from companion.studies.slots import head_places
from lib.data.corpora import load_corpus, unseen
from lib.data.documents import Document
from lib.decoding.run import Run
from lib.decoding.search import choose_sentences, source_sentences
from lib.evaluation.baselines import by_centrality, counted_in, lead, random_sentences
from lib.evaluation.rouge import count_words, words_for
from lib.papers import resolve
from lib.system.command_line import run_command
from lib.system.files import write_json

DRAWS = 10
COUNT = 10  # sentences at random, as many as the paper's Lead has


def compare_extracts(
    run: Path, /, *, dataset: tuple[str, ...], output: Path, documents: int = 200, reading: str = ""
) -> None:
    """Compare extracts on corpora, and write the numbers.

    Args:
        run: the folder of a run of Mem2Mem.
        dataset: corpora; their test documents are read.
        output: a JSON file for the numbers.
        documents: the first so many of a corpus.
        reading: a preset of Mem2Mem: read as it does, without heads.
    """
    opened, effects = lib.load(run), []
    for name in dataset:
        texts = unseen(load_corpus(name), "test", [opened.config["corpus"]], documents)
        rows = compare(opened, texts, reading)
        effects += [row | {"name": f"{Path(name).name}: {row['name']}"} for row in rows]
    command = this_command("companion.studies.extracts")
    about = {"command": command, "run": str(run), "reading": reading or opened.config["preset"]}
    write_json(output, {**about, "draws": DRAWS, "effects": effects})


def compare(run: Run, documents: Sequence[Document], reading: str = "") -> Iterator[dict]:
    """Measure the R-1 of each extract of the documents, and differences between extracts of equal
    length."""
    encoder = (
        replace(run.encoder, options=resolve("mem2mem", reading).options)
        if reading
        else run.encoder
    )
    encoded = encoder.encode(documents)
    read = [source_sentences(document, run.vocabulary) for document in encoded]
    whole = [document.sentences for document in documents]
    systems = {"first ten sentences": [[lead(sentences, COUNT) for sentences in whole]]}
    systems[f"{COUNT} at random"] = [
        [random_sentences(sentences, COUNT, np.random.default_rng(seed)) for sentences in read]
        for seed in range(DRAWS)
    ]
    pairs = [(f"{COUNT} at random", "first ten sentences")]
    if not reading:
        chosen = choose_sentences(run.model, encoded, run.vocabulary)
        heads = [[sentences[i] for i in numbers] for sentences, numbers in zip(read, chosen)]
        letters, words = counted_in(documents), [count_words(extract) for extract in heads]
        systems["heads"] = [heads]
        systems["at random, as long"] = [
            [
                as_long(s, np.random.default_rng(seed).permutation(len(s)), n)
                for s, n in zip(read, words)
            ]
            for seed in range(DRAWS)
        ]
        places = [head_places(run.model, document, encoder) for document in documents]
        random, orders = np.random.default_rng(0), []
        for document, sentences, of_heads in zip(documents, read, [*places[1:], places[0]]):
            moved = at_places(of_heads, [*map(len, encoder.options.cut(document))])
            orders.append(
                sorted(
                    random.permutation(len(sentences)), key=lambda i, moved=moved: i not in moved
                )
            )
        systems["places of another text's heads, as long"] = [
            list(map(as_long, read, orders, words))
        ]
        for text, sources in (("the text that is read", read), ("the whole paper", whole)):
            systems[f"LexRank of {text}, as long"] = [
                [
                    as_long(s, by_centrality(s, all_letters=letters), n)
                    for s, n in zip(sources, words)
                ]
            ]
        pairs += [("heads", other) for other in systems if other != "heads"]
        pairs += [("at random, as long", "first ten sentences")]
        pairs += [("places of another text's heads, as long", "at random, as long")]
    seed = [run.config["train"].get("seed", 0)]
    references, scores = [document.summary for document in documents], {}
    for name, draws in systems.items():
        scores[name] = np.mean([_rouge_1(texts, references) for texts in draws], 0)
        length = float(np.mean([count_words(text) for texts in draws for text in texts]))
        yield effect_row(name, "R-1", scores[name], seed, words=round(length, 1))
    for first, second in pairs:
        yield effect_row(f"{first} - {second}", "R-1", scores[first] - scores[second], seed)


def at_places(places: np.ndarray, lengths: Sequence[int]) -> list[int]:
    """Find the sentences at the places of another document's heads (`head_places`), counted from
    the nearer end of their section. lengths: of this document's sections."""
    sections = np.split(np.arange(sum(lengths)), np.cumsum(lengths)[:-1])
    return [
        int(sections[section - 1][begin - 1 if begin <= end else -end])
        for section, begin, end in places.T
        if section <= len(sections) and min(begin, end) <= len(sections[section - 1])
    ]


def _rouge_1(texts: Sequence[list[str]], references: Sequence[list[str]]) -> np.ndarray:
    """Compute F1 of R-1 in percent: [documents]. `rouge` takes far longer, for R-Lsum."""
    scorers = (RougeScorer(["rouge1"], tokenizer=words) for words in words_for(references))
    scores = [
        s.score("\n".join(wanted), "\n".join(text))
        for s, wanted, text in zip(scorers, references, texts)
    ]
    return np.array([100 * score["rouge1"].fmeasure for score in scores])


def as_long(sentences: list[str], order: Any, words: int) -> list[str]:
    """Take sentences in an `order` of their numbers until they have about so many words. In
    document order."""
    lengths = np.cumsum([count_words([sentences[i]]) for i in order])
    count = int(np.abs(lengths - words).argmin()) + 1
    return [sentences[i] for i in sorted(order[:count])]


main = partial(run_command, "companion.studies.extracts", __doc__, compare_extracts)

if __name__ == "__main__":
    main()
