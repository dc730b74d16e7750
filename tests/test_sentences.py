import json
import subprocess
import sys
from importlib import resources

import pytest

from lib.data.sentences import split_sentences
from lib.system.files import project_root


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two? Three! Four", 4),
        ("See Fig. 3 and Smith et al. (2003) for e.g. this. It holds.", 2),
        ("J. R. Smith of the U.S. Army came. He left.", 2),
        ("The value is 3.14. The i.i.d. case is easier.", 2),
        ("already tokenised . lower case text goes on . as in fig . 3 of smith et al . ( 2003 ) .", 3),
        ("no full stop", 1),
        ("   ", 0),
        ("He asked: “Why?” She left.", 2),
        ("lower case goes on here. so it does? yes.", 3),
        ("As Wubben et al. (2012) found. Štajner et al. (2014) did, too.", 2),
        ("Первое предложение (СНГ). Второе: и др. примеры! Третье", 3),
        ("هذه جملة عن DNA. هذه ثانية؟ وثالثة", 3),
        ("यह पहला वाक्य DNA का है। यह दूसरा है।", 2),
    ],
)
def test_sentences(text, count):
    assert len(split_sentences(text)) == count


def test_splitting_loses_nothing():
    text = 'A "b." C (d. E) f.  G\nH... I? J'
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "text", [".?!" * 50_000 + " A", "漢字" * 100_000, '."' * 100_000, ". " * 50_000, "." + " " * 200_000]
)
def test_sentences_of_odd_texts_take_no_longer(text):
    """Marks, or letters, or spaces without an end: in time that grows with the text and not with its square."""
    code = "import sys; from lib.data.sentences import split_sentences; print(len(split_sentences(sys.stdin.read())))"
    done = subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, timeout=60, encoding="utf-8",
        cwd=project_root(), check=True,
    )  # fmt: skip
    assert int(done.stdout) == len(split_sentences(text)) in (1, 2)


def test_the_word_before_a_mark_begins_behind_quotes_and_brackets():
    assert split_sentences("He saw (Fig. 3) it.") == ["He saw (Fig. 3) it."]
    assert split_sentences("He saw )Fig. 3 it.") == ["He saw )Fig. 3 it."], "an abbreviation behind a bracket"
    assert split_sentences("So what?! Yes.") == ["So what?!", "Yes."]
    assert split_sentences("Wait... What") == ["Wait...", "What"]
    assert split_sentences('"It is." "Never." Well') == ['"It is."', '"Never."', "Well"]


def test_sentences_against_human_splits():
    """Boundaries in the 250 papers whose abstracts, introductions and conclusions were split by hand."""
    correct = found = wanted = 0
    for split in ("train", "val", "test"):
        for line in (resources.files("aclsum") / "dataset" / f"{split}.jsonl").open(encoding="utf-8"):
            for sentences in json.loads(line)["sentences"].values():
                human = _ends([s for s in sentences if s.strip()])
                ours = _ends(split_sentences(" ".join(sentences)))
                correct, found, wanted = correct + len(human & ours), found + len(ours), wanted + len(human)
    assert correct / found > 0.998
    assert correct / wanted > 0.943


def _ends(sentences: list[str]) -> set[int]:
    ends, length = set(), 0
    for sentence in sentences:
        length += len("".join(sentence.split()))
        ends.add(length)
    return ends - {length}
