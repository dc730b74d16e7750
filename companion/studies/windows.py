"""How a windowed run reads papers: slides, windows against chunks, the order of sections, links of references.

    python -m companion.studies.windows trained/windowed --dataset pmc-sample --output figures/windowed_papers.json
    python -m companion.studies.windows trained/windowed chunks links --dataset pmc-sample --vectors-of sumpubmed

A part that --output already holds is not measured again.

slides: papers are read whole; how many windows the first, second, third ... slide moves on by, where one slide is all
symbols in a row. references: how much of them comes from the windows between the first and the last, linked as in
training. chunks: what is read is cut into as many chunks as it has windows, each is summarized alone in an equal
share of the words, and the parts are put together. orders: papers are cut to introduction, second section and
conclusion, and these change their order. links: of reference sentences that share a run of words with a single
sentence of the text, which rank each similarity gives to that sentence. Word vectors are the run's embeddings; with
--vectors-of CORPUS also what is learned on its training documents, as references are marked with.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

import lib
from companion.studies.links import MEASURES, OF_WORDS, Measure, SentenceLists, by_sums, by_tfidf, rank_of
from lib.data.batch import EncodedDocument
from lib.data.corpora import load_corpus, unseen
from lib.data.documents import Document
from lib.data.sections import choose_sections
from lib.data.split import Split
from lib.data.vocabulary import EOS, SLIDE
from lib.data.word_vectors import learn_vectors
from lib.decoding.run import Run
from lib.decoding.search import batches, written
from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.evaluation.scores import score_systems
from lib.models.windowed import Windowed, count_windows
from lib.system.command_line import command_parser, plain_errors
from lib.system.errors import InputError, one_of
from lib.system.files import check_replaces, read_numbers, write_json

CUT, LEARNED_ON = 200, 3_000  # words of a summary that are scored; documents that word vectors are learned on
TOGETHER = 10  # documents in a batch
NEEDED = ("run", "corpus", "documents")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser("companion.studies.windows", __doc__)
    parser.add_argument("run", type=Path, help="the folder of a run with windows")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; by default all")
    parser.add_argument("--dataset", required=True, help="a corpus; its test documents are read")
    parser.add_argument("--documents", type=int, default=50, help="the first so many (50)")
    parser.add_argument("--vectors-of", help="a corpus to learn word vectors on too, for links")
    parser.add_argument("--output", type=Path, help="a JSON file for the numbers")
    args = parser.parse_args(arguments)
    with plain_errors():
        _measure(args)


def _measure(args: Namespace) -> None:
    if args.documents < 2:
        raise InputError(f"--documents must be at least 2, not {args.documents}")
    parts = [one_of(name, PARTS, "part") for name in args.parts] or list(PARTS)
    if args.output:
        check_replaces(args.output, "how papers are read", NEEDED)
    run = lib.load(args.run, device="cpu")
    if not (isinstance(run.model, Windowed) and run.model.config.window):
        raise InputError(f"{args.run}: this run has no windows")
    documents = unseen(load_corpus(args.dataset), "test", [run.config["corpus"]], args.documents)
    about = {"run": str(args.run), "corpus": Path(args.dataset).name, "documents": len(documents)}
    numbers: dict = dict(about)
    if args.output and args.output.exists():
        numbers = read_numbers(args.output, "how papers are read", NEEDED)
        if {name: numbers[name] for name in NEEDED} != about:
            raise InputError(f"{args.output} is of another run, corpus or number of documents: name another file")
    for name in parts:
        if name not in numbers:
            numbers[name] = PARTS[name](run, documents, args)
            if args.output:
                write_json(args.output, numbers)
        print(f"{name}:", *(f"  {key}: {value}" for key, value in numbers[name].items()), sep="\n")


# ----------------------------------------------------------------------------------------------------------- slides


def slides(run: Run, documents: Sequence[Document], _: Namespace) -> dict:
    """What is written of whole papers, the shortest first: the windows that the first, second ... slide moves on by,
    means over the papers that have so many slides; how many windows there are, and by how many all slides move on."""
    config, read = run.model.config, run.options.source_tokens
    whole = replace(run.encoder, options=replace(run.options, source_tokens=None, section_words=None))
    in_training = count_windows(read, config.window, config.stride) if read else 1
    texts = sorted(whole.encode(documents), key=lambda text: len(text.source))
    counts, jumps = [count_windows(len(text.source), config.window, config.stride) for text in texts], []
    for first in range(0, len(texts), TOGETHER):
        part = slice(first, first + TOGETHER)
        most = max(run.decode.max_length, run.options.summary_tokens // in_training * counts[part][-1])
        together = batches(run.model, texts[part], TOGETHER, run.vocabulary)
        jumps += [jumps_of(best.ids) for best in written(run.model, together, replace(run.decode, max_length=most))]
    ordinals = {}
    for i in range(5):
        sizes = np.array([jump[i] for jump in jumps if len(jump) > i])
        ordinals[f"slide {i + 1}"] = {"papers": len(sizes), "windows": str(interval(sizes)), "sizes": sizes.tolist()}
    return {
        **ordinals,
        "windows": counts, "windows moved on by": [sum(jump) for jump in jumps], "slides": jumps,
    }  # fmt: skip


def jumps_of(ids: Sequence[int]) -> list[int]:
    """How many symbols stand in a row, at each place where there are any."""
    sizes, before = [], 0
    for i in ids:
        if i == SLIDE:
            sizes = [*sizes[:-1], sizes[-1] + 1] if before == SLIDE else [*sizes, 1]
        before = i
    return sizes


def references(run: Run, documents: Sequence[Document], args: Namespace) -> dict:
    """From which windows references are written, each sentence linked as in training: the share of their words that
    comes from the windows between the first and the last of a text, with a 95% interval over papers, and how many
    references have none from there. Texts of two windows are left out."""
    (about, vectors), box = list(_vectors(run, args).items())[-1], _box(run)
    between = []
    for document in run.encode(documents):
        count, target = count_windows(len(document.source), *box), run.options.mark(document, vectors).target
        windows = np.cumsum(target == SLIDE)[(target != SLIDE) & (target != EOS)]  # of each word
        if count > 2:
            between.append((((windows > 0) & (windows < count - 1)).sum(), len(windows)))
    words, of = np.array(between, dtype=float).reshape(-1, 2).T
    return {
        "vectors": about, "papers": len(words), "no word between": int((words == 0).sum()),
        "words between": str(interval(100 * words, weights=of)) if len(words) else "",
    }  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- chunks


def chunks(run: Run, documents: Sequence[Document], _: Namespace) -> dict:
    """Scores of what is written through windows, and of the summaries of chunks, put together."""
    encoded = run.encode(documents)
    systems = {"windows": _summaries(run, encoded)}
    for name, parts_of in CHUNKS.items():
        texts = [parts_of(d, int(count_windows(len(d.source), *_box(run)))) for d in encoded]
        written_of = [_summaries(run, parts, len(parts)) for parts in texts]
        systems[name] = [[sentence for summary in text for sentence in summary] for text in written_of]
    return _scored(systems, documents, run, dict.fromkeys(CHUNKS, "windows"))


def _box(run: Run) -> tuple[int, int]:
    return run.model.config.window, run.model.config.stride


def equal_cuts(document: EncodedDocument, count: int) -> list[int]:
    """Where a text is cut into so many chunks of equal length, to a word."""
    return [len(document.source) * i // count for i in range(1, count)]


def sentence_cuts(document: EncodedDocument, count: int) -> list[int]:
    """The ends of sentences that are nearest to `equal_cuts`."""
    ends = np.cumsum(document.sentence_lengths)[:-1]
    places = equal_cuts(document, count)
    return sorted({int(ends[np.abs(ends - place).argmin()]) for place in places}) if len(ends) else places


def chunks_of(document: EncodedDocument, cuts: Sequence[int]) -> list[EncodedDocument]:
    """A document in parts, cut after so many words: a sentence that a cut goes through is one in both parts."""
    ends = np.cumsum(document.sentence_lengths)
    parts = []
    for begin, end in zip([0, *cuts], [*cuts, len(document.source)]):
        inside = [begin, *ends[(ends > begin) & (ends < end)].tolist(), end]
        lengths = np.diff(inside).astype(document.sentence_lengths.dtype)
        parts.append(replace(document, source=document.source[begin:end], sentence_lengths=lengths))
    return parts


CHUNKS: dict[str, Callable[[EncodedDocument, int], list[EncodedDocument]]] = {
    "equal chunks": lambda document, count: chunks_of(document, equal_cuts(document, count)),
    "chunks of whole sentences": lambda document, count: chunks_of(document, sentence_cuts(document, count)),
    "first and last chunk": lambda document, count: chunks_of(document, equal_cuts(document, count))[
        :: max(1, count - 1)
    ],
}


def _summaries(run: Run, documents: Sequence[EncodedDocument], share: int = 1) -> list[list[str]]:
    """Sentences that are written of each document, in one of so many shares of the run's lengths."""
    lengths = {"min_length": -(-run.decode.min_length // share), "max_length": run.decode.max_length // share}
    best = written(run.model, batches(run.model, documents, TOGETHER, run.vocabulary), replace(run.decode, **lengths))
    ids = [[i for i in hypothesis.ids if i != SLIDE] for hypothesis in best]
    return [run.vocabulary.sentences(i, d.unknown) for i, d in zip(ids, documents)]


def _scored(
    systems: Mapping[str, Sequence[list[str]]], documents: Sequence[Document], run: Run, against: Mapping[str, str]
) -> dict[str, dict]:
    """A row of each system: R-1 with its interval and that of the difference from the system that it stands
    `against`, words, share of the trigrams that were said before."""
    parts, rows = score_systems(systems, documents, run.options, CUT), {}
    r1 = {name: np.array(part["rouge"])[:, 0] for name, part in parts.items()}
    for name, part in parts.items():
        repeated, every = np.sum(part["repeated"], axis=0).tolist()
        rows[name] = {
            "R-1": str(interval(r1[name])),
            "difference": str(paired_bootstrap(r1[against[name]], r1[name])) if name in against else "",
            "compared with": against.get(name, ""),
            "words": part["words"], "repeated": round(repeated / max(1, every), 4), "values": r1[name].tolist(),
        }  # fmt: skip
    return rows


# ----------------------------------------------------------------------------------------------------------- orders

ORDERS = {"conclusion first": (2, 0, 1), "conclusion in the middle": (0, 2, 1), "conclusion last": (0, 1, 2)}
AGAINST = {
    "conclusion first": "as they are", "conclusion in the middle": "as they are",
    "conclusion last": "conclusion in the middle",
}  # fmt: skip


def orders(run: Run, documents: Sequence[Document], _: Namespace) -> dict[str, dict]:
    """Scores of what is written of papers as they are, and with their conclusion in each place of three sections.
    Raises InputError where fewer than two papers have three sections."""
    papers = [document for document in documents if len(document.sections) > 2]
    if len(papers) < 2:
        raise InputError("orders: at least two papers with three sections are needed; leave this part out")
    systems = {"as they are": _summaries(run, run.encode(papers))}
    for name, order in ORDERS.items():
        systems[name] = _summaries(run, run.encode([reordered(paper, order) for paper in papers]))
    return _scored(systems, papers, run, AGAINST)


def reordered(document: Document, order: Sequence[int]) -> Document:
    """Introduction, second section and conclusion of a document, in this order."""
    places = np.array(choose_sections(document.section_names, 3))[list(order)]
    names, sections = ([values[i] for i in places] for values in (document.section_names, document.sections))
    return replace(document, section_names=names, sections=sections)


# ------------------------------------------------------------------------------------------------------------ links


def links(run: Run, documents: Sequence[Document], args: Namespace) -> dict[str, dict]:
    """Ranks that each similarity gives to the sentence that a reference sentence was copied from, with the run's
    embeddings as word vectors, and with vectors learned on `args.vectors_of`; the similarities of the first paper."""
    vectors = _vectors(run, args)
    texts = [SentenceLists.of(document, run.options.lower) for document in run.encode(documents)]
    rows = {}
    for about, values in vectors.items():
        of_vectors = [name for name in MEASURES if name not in OF_WORDS]
        rows |= {f"{name}, {about}": _ranked(MEASURES[name], texts, values) for name in of_vectors}
    rows |= {name: _ranked(MEASURES[name], texts, values) for name in OF_WORDS}
    rows = with_differences(rows)
    maps = {"sums": by_sums(texts[0], values), "tf-idf": by_tfidf(texts[0], values)}
    first = {name: np.round(similar, 3).tolist() for name, similar in maps.items()}
    return {**rows, "first paper": {"vectors": about, **first, "copies": list(texts[0].copies)}}


def _vectors(run: Run, args: Namespace) -> dict[str, np.ndarray]:
    """Word vectors [V, d] by what they are: the run's embeddings, and those learned on `args.vectors_of`."""
    embeddings = run.model.embedding.weight.detach().double().cpu().numpy().copy()
    embeddings[: SLIDE + 1] = 0
    vectors = {"embeddings of the run": embeddings}
    if args.vectors_of:
        corpus = load_corpus(args.vectors_of, errors="skip")
        learned = Split.of(text for document in corpus.split("train", LEARNED_ON) for text in run.encode([document]))
        name = f"learned on {len(learned):,} documents of {Path(corpus.name).name}"
        vectors[name] = learn_vectors(learned, len(run.vocabulary))
    return vectors


def with_differences(rows: dict[str, dict]) -> dict[str, dict]:
    """Rows of `links`, each with the paired difference of its share of first ranks from that of the first row."""
    first, *others = rows
    shares = {name: np.array(row["by paper"], dtype=float)[:, [0, 3]].T for name, row in rows.items()}
    for name in others:
        (a, of_a), (b, of_b) = shares[first], shares[name]
        rows[name]["difference"] = str(paired_bootstrap(100 * a, 100 * b, weights=(of_a, of_b)))
    return {first: {**rows[first], "difference": ""}, **{name: rows[name] for name in others}}


def _ranked(measure: Measure, texts: Sequence[SentenceLists], vectors: np.ndarray) -> dict:
    """Shares of the copied sentences whose source has the first rank, or one of the first three, with intervals over
    papers; mean words of the sentence that is linked, of the true one, of all; rank correlation of similarity and
    length."""
    hits, linked, true, every, correlations = [], [], [], [], []
    for text in texts:
        values, lengths = measure(text, vectors), np.array([len(sentence) for sentence in text.source])
        ranks = np.array([rank_of(values[i], j) for i, j in text.copies])
        hits.append([(ranks == 1).sum(), (ranks <= 3).sum(), ranks.sum(), len(ranks)])
        for i, j in text.copies:
            linked.append(lengths[values[i].argmax()])
            true.append(lengths[j])
            every.append(lengths.mean())
            correlations.append(np.corrcoef(rankdata(values[i]), rankdata(lengths))[0, 1])
    first, three, ranks, count = np.array(hits, dtype=float).T
    words = {"linked": linked, "true": true, "all": every}
    return {
        "sentences": int(count.sum()), "papers": int((count > 0).sum()),
        "first": str(interval(100 * first, weights=count)), "first three": str(interval(100 * three, weights=count)),
        "rank": str(interval(ranks, weights=count)),
        **{f"words, {name}": round(float(np.mean(lengths)), 1) for name, lengths in words.items()},
        "similarity and length": round(float(np.mean(correlations)), 3),
        "by paper": np.array(hits).tolist(),
    }  # fmt: skip


PARTS: dict[str, Callable[[Run, Sequence[Document], Namespace], dict]] = {
    "slides": slides, "references": references, "chunks": chunks, "orders": orders, "links": links,
}  # fmt: skip


if __name__ == "__main__":
    main()
