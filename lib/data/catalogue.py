"""The corpora that have a name: what they are, where they come from, under which licence, and how to get them."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class HubCorpus:
    """A corpus on the Hub: what to ask for, and how its columns are called there."""

    repository: str
    configuration: str | None = None
    source: str = "article"
    summary: str = "abstract"
    revision: str | None = None
    separator: str | None = None  # between the articles of one cluster
    note: str = ""
    what: str = ""
    tokenised: bool = False  # whether words and marks are set apart by spaces


_NO_SECTIONS = (
    "The Hub's copy has no section names, so that Mem2Mem's preset `paper` reads the first 2,000 words of a paper, "
    "not 500 of each of four sections. For sections, unpack the original {}-dataset.zip of Cohan et al. (train.txt, "
    'val.txt, test.txt), put a file corpus.json with {{"tokenised": true}} beside them, and pass the folder.'
)
HUB = {
    "arxiv": HubCorpus(
        "ccdv/arxiv-summarization", "document", note=_NO_SECTIONS.format("arxiv"), what="215,913 papers of arXiv",
        tokenised=True,
    ),
    "pubmed": HubCorpus(
        "ccdv/pubmed-summarization", "document", note=_NO_SECTIONS.format("pubmed"), what="133,215 papers of PubMed",
        tokenised=True,
    ),
    "cnn_dailymail": HubCorpus("abisee/cnn_dailymail", "3.0.0", summary="highlights", what="news and its highlights"),
    "multi_news": HubCorpus(
        "alexfabbri/multi_news", None, "document", "summary", revision="refs/convert/parquet", separator="|||||",
        what="clusters of news articles",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class ByHand:
    """A corpus that its owners hand out: what to do, before its folder can be read."""

    how: str  # to get it
    size: str
    licence: str
    splits: str = "its owners'"
    private: bool = False  # whether none of its texts may be published
    tokenised: bool = False  # whether words and marks are set apart by spaces


# Looked for in the folder `data`, each under its name.
MANUAL = {
    "sumpubmed": ByHand(
        "clone github.com/vgupta123/sumpubmed",
        "32,689 articles of BioMed Central",
        "MIT; its owners ask for academic, non-commercial use. Train and report on it, publish none of its texts",
        "600 for validation, 600 for the test (lists of the project), the rest for training",
        private=True,
    ),
    "reuters": ByHand(
        "unpack the 22 files reut2-*.sgm of Reuters-21578, distribution 1.0 (D. Lewis)",
        "21,578 stories of 1987, 28 MB",
        "research only. Publish none of its texts",
        "by time: 88, 5 and 7 of 100",
        private=True,
    ),
    "scisummnet": ByHand(
        "clone github.com/WING-NUS/scisumm-corpus",
        "papers of the ACL Anthology",
        "CC BY 4.0",
        "67 for validation, 96 for the test (lists of the project), the rest for training",
    ),
    "pmc": ByHand(
        "put articles of PubMed Central's open-access subset (JATS's XML, gzipped or not: NAME.xml or "
        "NAME/article.xml, an article or many in each)",
        "as many as are taken",
        "of each article",
        "80, 10 and 10 of 100, by the SHA-1 of the id",
    ),
    "scitldr": ByHand(
        "clone github.com/allenai/scitldr and copy train.jsonl, dev.jsonl and test.jsonl of SciTLDR-Data/SciTLDR-A",
        "3,229 abstracts of papers on machine learning, a sentence each",
        "Apache 2.0",
    ),
    "newsroom": ByHand(
        "fill in the form at lil.nlp.cornell.edu/newsroom and unpack release.tar: train.jsonl.gz, dev.jsonl.gz and "
        "test.jsonl.gz",
        "1.3 million articles of 38 publications",
        "research only, by the form",
        private=True,
    ),
    "wikihow": ByHand(
        "download wikihowAll.csv and the lists all_train.txt, all_val.txt and all_test.txt that the project "
        "mahnazkoupaee/WikiHow-Dataset links to",
        "more than 200,000 articles",
        "CC BY-NC-SA 3.0",
    ),
    "gigaword": ByHand(
        "download ggw_data.zip from the Hub's repository Harvard/gigaword (folder data), or the sumdata archive of "
        "harvardnlp/sent-summary, and unpack it: the files of org_data or sumdata",
        "3.8 million sentences and headlines",
        "the Linguistic Data Consortium's",
        private=True,
        tokenised=True,
    ),
    "wikisum": ByHand(
        "download the ranked shards that the project nlpyang/hiersumm links to (WIKI.train.0.pt and so on) and its "
        "SentencePiece model",
        "300,000 clusters of web pages",
        "of each page",
    ),
    "duc2004": ByHand(
        "ask NIST for DUC 2004 (duc.nist.gov) and put input.txt and task1_ref0.txt to task1_ref3.txt into one "
        "folder, as make_DUC.py of the project facebookarchive/NAMAS makes them: a text or headline a line, the "
        "first sentence of an article and, where it has fewer than 130 characters, the second joined to it by a "
        "comma; texts are tokenised, which corpus.json has to say",
        "500 texts with four headlines each, for tests only",
        "by agreement",
        private=True,
    ),
}
# Newsroom by how much of a summary is copied; the published numbers of Mem2Mem's Table 1 are for the first.
NEWSROOM_BINS = ("newsroom:abstractive", "newsroom:mixed", "newsroom:extractive")
CLUSTERS = "aclsum:paragraphs"
SAMPLE = "pmc-sample"
SHIPPED = {SAMPLE: "pmc_sample", "docstrings": "docstrings_sample"}  # the folder of each, beside this file
NAMES = ("aclsum", CLUSTERS, *SHIPPED, *HUB, *MANUAL, *NEWSROOM_BINS)


def is_name(dataset: str | Path) -> bool:
    """Whether that is the name of a corpus, and not the path of a folder."""
    return isinstance(dataset, str) and dataset in NAMES


def is_private(name: str) -> bool:
    """Whether none of a corpus's texts may be published. Of a folder its owner knows."""
    corpus = MANUAL.get(name.partition(":")[0])
    return corpus is not None and corpus.private


# Test documents of a corpus that another one has among its training documents: (corpus, the other) -> their ids.
IN_BOTH = {(SAMPLE, "sumpubmed"): frozenset({"PMC4784345"})}
