import pytest

from lib.data.words import counted_words, tokenize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't stop", ["do", "n't", "stop"]),
        ("Parkinson's, (3.5%)", ["Parkinson", "'s", ",", "(", "3.5", "%", ")"]),
        ("state-of-the-art", ["state", "-", "of", "-", "the", "-", "art"]),
        ("in @xmath0 of <cit> .", ["in", "@xmath0", "of", "<cit>", "."]),
        ("1,000 naïve Σ", ["1,000", "naïve", "Σ"]),
        ("", []),
    ],
)
def test_words(text, words):
    assert tokenize(text) == words


def test_counted_words():
    """ROUGE's, unless most letters are others: these texts had none, and a score of 0."""
    assert counted_words("The naïve β-cell, 3.5 LaTeX_1") == ["the", "na", "ve", "cell", "3", "5", "latex", "1"]
    assert counted_words("Модель GRU-2 «читает».") == ["модель", "gru", "2", "читает"]
    assert counted_words("यह हिन्दी है।") == ["यह", "हिन्दी", "है"]
    assert counted_words("模型GRU读テ。") == ["模", "型", "gru", "读", "テ"]
    assert counted_words("αβ ab") == ["ab"] and counted_words("αβγ ab") == ["αβγ", "ab"]
    assert counted_words("…") == counted_words("") == []


def test_tokenised_text_stays():
    text = "the patient 's heart ( 3 cm ) was n't seen ."
    assert tokenize(text) == text.split()
