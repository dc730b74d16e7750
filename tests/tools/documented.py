"""The commands that the project's texts name, and the files that these commands take for given."""

import ast
import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from lib.system.files import project_root

ROOT = project_root()
BIN = Path(sys.executable).parent
PROGRAMS = r"python[\d.]*|make|papermill|jupyter|snakemake|torchrun|nbgrader|pip|uv|conda|cat|cd|sphinx-build|pytest"
COMMAND = re.compile(rf"(?:[A-Z_]+=\S+ )*(?:{PROGRAMS}) .|\. \S+/activate")
FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)  # also of a list
KEPT_TABLE = re.compile(r"^<!-- table .*?^<!-- end -->$", re.MULTILINE | re.DOTALL)  # by what it was made, once
COMMENT = re.compile(r"""("[^"]*"|'[^']*')|(?:^|\s)#.*""")  # not what stands in quotes


def files() -> list[str]:
    """All of the project: what git has of it; in a download without git, what stands in none of the folders that
    running makes."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]
    made = {".venv", "runs", "cache", "class", "slides", "data"}
    folders = [path for path in ROOT.iterdir() if path.is_dir() and path.name not in made]
    paths = [*ROOT.glob("*"), *(path for folder in folders for path in folder.rglob("*"))]
    return sorted(str(p.relative_to(ROOT)) for p in paths if p.is_file() and "__pycache__" not in p.parts)


def texts() -> list[Path]:
    """Every text of the project; a list of changes tells what was."""
    return [ROOT / name for name in files() if name.endswith(".md") and name != "CHANGELOG.md"]


def commands_of(text: str) -> Iterator[str]:
    """What a Markdown text tells its readers to type: the lines of its blocks of shell, and elsewhere what stands in
    backticks, begins with a program and has arguments."""
    text = KEPT_TABLE.sub("", text)
    for language, block in FENCED.findall(text):
        yield from lines_of(block) if language in ("sh", "bash", "shell", "console") else ()
    yield from spans_of(FENCED.sub("", text))


def lines_of(block: str) -> Iterator[str]:
    """Each command of a block in one line, without comments."""
    lines = (COMMENT.sub(lambda found: found[1] or "", line) for line in block.replace("\\\n", " ").splitlines())
    return filter(None, (" ".join(line.split()) for line in lines))


def spans_of(text: str) -> Iterator[str]:
    spans = (" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", text))
    return filter(COMMAND.match, spans)


def commands_of_docstring(docstring: str) -> Iterator[str]:
    """The same of a module's docstring, whose commands are lines of their own."""
    yield from filter(COMMAND.match, lines_of(docstring))
    yield from spans_of(docstring)


def python_of(text: str) -> list[str]:
    return [block for language, block in FENCED.findall(text) if language == "python"]


def documented() -> dict[str, str]:
    """{command: where it stands first} of the texts and of the library's docstrings."""
    found: dict[str, str] = {}
    for path in texts():
        for command in commands_of(path.read_text(encoding="utf-8")):
            found.setdefault(command, str(path.relative_to(ROOT)))
    for path in sorted((ROOT / "lib").rglob("*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        for command in commands_of_docstring(docstring):
            found.setdefault(command, str(path.relative_to(ROOT)))
    return found


def copy_of_the_checkout(folder: Path) -> None:
    """What git has of it, as it stands here, and its environment. Compiled code is shared, or each copy would have to
    compile for half a minute."""
    for name in files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    for package in ("lib", "lib/layers"):
        (ROOT / package / "__pycache__").mkdir(exist_ok=True)
        (folder / package / "__pycache__").symlink_to(ROOT / package / "__pycache__")
    (folder / ".venv").symlink_to(sys.prefix)


# ------------------------------------------------------------------------------------- what commands take for given

SPLITS = {"train": range(24), "val": range(24, 32), "test": range(32, 40)}


def _sentences(number: int) -> list[str]:
    return [sentence for section in _manual(number)["sections"] for sentence in section]


def _manual(number: int) -> dict:
    from tests.test_whole_pages import manual

    return manual(number)


def _lines(folder: Path, name: str, record: Callable[[int], str]) -> None:
    """A file for each split, a record a line. name: of the files, with {} for the split's."""
    folder.mkdir(parents=True)
    for split, numbers in SPLITS.items():
        (folder / name.format(split)).write_text("".join(f"{record(n)}\n" for n in numbers), encoding="utf-8")


def sections(folder: Path) -> None:
    _lines(folder, "{}.jsonl", lambda n: json.dumps(_manual(n)))


def cohan(folder: Path) -> None:
    """As arXiv and PubMed are unpacked."""

    def record(number: int) -> str:
        made = {"article_id": str(number), "article_text": _sentences(number), "labels": None, **_manual(number)}
        return json.dumps(made | {"abstract_text": [f"<S> {s} </S>" for s in made["abstract_text"]]})

    _lines(folder, "{}.txt", record)


def highlights(folder: Path) -> None:
    """As CNN/DailyMail comes from the Hub."""
    import pandas as pd

    folder.mkdir(parents=True)
    for split, numbers in SPLITS.items():
        rows = [(str(n), " ".join(_sentences(n)), "\n".join(_manual(n)["abstract_text"])) for n in numbers]
        pd.DataFrame(rows, columns=["id", "article", "highlights"]).to_parquet(folder / f"{split}.parquet")


def clusters(folder: Path) -> None:
    """As Multi-News is passed on: articles in a line."""
    _lines(folder, "{}.src", lambda n: " ||||| ".join(_sentences(n)))
    for split, numbers in SPLITS.items():
        summaries = (" ".join(_manual(n)["abstract_text"]) for n in numbers)
        (folder / f"{split}.tgt").write_text("\n".join(summaries) + "\n", encoding="utf-8")


def headlines(folder: Path) -> None:
    """As Gigaword is passed on (org_data): a sentence and its headline, long enough to be kept."""
    _lines(folder, "{}.src.txt", lambda n: _sentences(n)[1].lower().replace(". ", ", and "))
    for split, numbers in SPLITS.items():
        titles = (_manual(n)["abstract_text"][0].lower().rstrip(".") for n in numbers)
        (folder / f"{split}.tgt.txt").write_text("\n".join(titles) + "\n", encoding="utf-8")


def wikihow(folder: Path) -> None:
    _lines(folder, "all_{}.txt", lambda n: _manual(n)["title"])
    with open(folder / "wikihowAll.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["headline", "title", "text"])
        for number in range(40):
            made = _manual(number)
            steps = "\n".join(f"{s.rstrip('.')}.," for s in made["abstract_text"])
            rows.writerow([steps, made["title"], " ".join(_sentences(number))])


def wikisum(folder: Path) -> None:
    """Ranked shards and their pieces, with the names and the symbols of who passed them on."""
    import sentencepiece
    import torch

    folder.mkdir(parents=True)
    symbols = {"pad_id": 3, "pad_piece": "<PAD>", "unk_id": 0, "bos_id": 1, "eos_id": 2}
    symbols |= {"bos_piece": "<S>", "eos_piece": "</S>", "user_defined_symbols": ["<T>", "<P>", "<Q>"]}
    texts = (s for n in range(40) for s in _sentences(n))
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=texts, model_prefix=str(folder / "spm"), vocab_size=120, minloglevel=2,
        hard_vocab_limit=False, **symbols,
    )  # fmt: skip
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))
    for split, numbers in SPLITS.items():
        shard = []
        for made in map(_manual, numbers):
            first, *others = (pieces.Encode(text) for (text,) in made["sections"])
            source = [[*pieces.Encode(made["title"]), pieces.PieceToId("<T>"), *first], *others]
            target = [1, *pieces.Encode(" ".join(made["abstract_text"])), 2]
            shard.append({"src": source, "tgt": target, "tgt_str": " <Q> ".join(made["abstract_text"])})
        torch.save(shard, folder / f"WIKI.{split.replace('val', 'valid')}.0.pt")


def sumpubmed(folder: Path) -> None:
    from lib.data.releases import held_out

    listed = held_out("sumpubmed")
    ids = {split: [name for name, of in listed.items() if of == split] for split in ("val", "test")}
    ids["train"] = [name for name in (f"sumpubmed-{n}" for n in range(1, 1000)) if name not in listed]
    for kind in ("text", "abstract"):
        (folder / kind).mkdir(parents=True)
    for split, numbers in SPLITS.items():
        for number, name in zip(numbers, ids[split]):
            file, parts = f"{name.removeprefix('sumpubmed-')}.txt", range(100 * number, 100 * number + 12)
            body = [" ".join(_sentences(n)).lower() for n in parts]
            text = f"BACKGROUND\n{' '.join(body[:6])}\n\nCONCLUSIONS\n{' '.join(body[6:])}\n"
            abstract = " ".join(s for n in parts for s in _manual(n)["abstract_text"]).lower()
            (folder / "text" / f"text_{file}").write_text(text, encoding="utf-8")
            (folder / "abstract" / f"abstract_{file}").write_text(f"BACKGROUND\n{abstract}\n", encoding="utf-8")


def reuters(folder: Path) -> None:
    from tests.test_releases import STORY

    folder.mkdir(parents=True)
    stories = []
    for number in range(120):
        title, body = _manual(number)["abstract_text"][0], "\n    ".join(_sentences(number))
        stories.append(STORY.format(number=number, title=title.upper(), body=body))
    (folder / "reut2-000.sgm").write_text("".join(stories), encoding="latin-1")


def text(path: Path) -> None:
    parts = (f"# {name}\n\n{body}\n" for n in range(3) for name, (body,) in _parts(n))
    path.write_text("\n".join(parts), encoding="utf-8")


def _parts(number: int) -> Iterator[tuple[str, list[str]]]:
    made = _manual(number)
    return zip(made["section_names"], made["sections"])


def dispatch(path: Path) -> None:
    path.write_text(" ".join(_sentences(0)), encoding="utf-8")


def records(path: Path) -> None:
    path.write_text("".join(json.dumps(_manual(n)) + "\n" for n in range(2)), encoding="utf-8")


def table(path: Path) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["title", "text"], *([_manual(n)["title"], _sentences(n)[0]] for n in range(2))])


def kept(name: str) -> Callable[[Path], None]:
    """A run: the one that the project keeps under this name."""
    return lambda path: shutil.copytree(ROOT / "trained" / name, path, ignore=shutil.ignore_patterns("*.md"))


def kept_table(path: Path) -> None:
    shutil.copy(ROOT / "figures" / "read_again_table2_reuters.json", path)


def figure(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "figures" / path.name, path)


def figures(folder: Path) -> None:
    figure(folder / "read_again_seconds.json")


def scores(seed: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        from tests.test_results import of_seed

        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(of_seed(seed, 30.0 + seed)), encoding="utf-8")

    return make


def table_scores(path: Path) -> None:
    from companion import make_tables

    scores(0)(path.parent / "first.json")
    made = ["--corpus", "aclsum", "--output", str(path.parent / path.name.replace(".scores.json.gz", ".json"))]
    make_tables.main(["table", "mem2mem_table2", f"hred={path.parent / 'first.json'}", *made])


def summaries(path: Path) -> None:
    from tests.test_human import write

    ids = [f"d{n}" for n in range(20)]
    references = [_manual(n)["abstract_text"] for n in range(20)]
    write(path, [[f"{path.stem} says: {s}"] for s, _ in references], references, ids=ids)


def theirs(path: Path) -> None:
    """The first test document of two corpora, and texts of the user's: who wrote it begins as the text does."""
    from lib.data.corpora import load_corpus

    documents = [document for name in ("aclsum", "pmc-sample") for document in load_corpus(name).split("test", 1)]
    lines = [{"id": document.id, "summary": document.sentences[:3]} for document in documents]
    lines += [{"id": name, "summary": ["A pump moves water."]} for name in ("paper.md", "notes.txt")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def scores_of_theirs(path: Path) -> None:
    from lib import score

    path.parent.mkdir(parents=True, exist_ok=True)
    theirs(path.parent / "theirs.jsonl")
    given = ["--dataset", "pmc-sample", "--documents", "1", "--output", str(path)]
    score.main(["summaries", str(path.parent / "theirs.jsonl"), *given])


def support_table(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "figures" / "support_table_pmc-sample.json", path)


def rating(folder: Path) -> None:
    """Sheets that people have filled in."""
    from companion.human.__main__ import main
    from companion.human.sheets import CRITERIA
    from tests.test_human import fill

    folder.parent.mkdir(parents=True, exist_ok=True)
    systems = {name: folder.parent / f"{name}.jsonl" for name in ("HT", "FT", "Lead")}
    for path in systems.values():
        summaries(path)
    main(["sheet", str(folder), "--documents", "3", *(f"{name}={path}" for name, path in systems.items())])
    fill(folder / "questions.csv", lambda row: {"question": f"What of {row['document']}?", "answer": "a pump"})
    fill(folder / "ratings.csv", lambda row: dict.fromkeys(CRITERIA, str(1 + len(row["summary"]) % 5)))


def course(folder: Path) -> None:
    """A class whose page is called PAGE: handed out, handed in by STUDENT, graded; and a download to collect."""
    from companion.site.class_pages import for_class, write_config

    page = json.loads((ROOT / "notebooks" / "hierarchical_transformer.ipynb").read_text(encoding="utf-8"))
    (folder / "source" / "PAGE").mkdir(parents=True)
    exercises = json.dumps(for_class(page, "hierarchical_transformer"))
    (folder / "source" / "PAGE" / "PAGE.ipynb").write_text(exercises, encoding="utf-8")
    write_config(folder)
    _nbgrader(folder, "generate_assignment", "PAGE", "--create")
    archive = folder / "downloaded" / "PAGE" / "archive"
    archive.mkdir(parents=True)
    for handed_in in (folder / "submitted" / "STUDENT" / "PAGE" / "PAGE.ipynb", archive / MOODLE):
        handed_in.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "release" / "PAGE" / "PAGE.ipynb", handed_in)
    _nbgrader(folder, "autograde", "PAGE", "--create")


MOODLE = "Ada Li_4021_assignsubmission_file_PAGE.ipynb"


def _nbgrader(folder: Path, *arguments: str) -> None:
    given = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    subprocess.run([BIN / "nbgrader", *arguments], cwd=folder, env=given, check=True, capture_output=True)
