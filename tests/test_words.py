import hashlib
import json
import re
import time
from importlib import resources
from itertools import chain
from pathlib import Path
from unicodedata import category, is_normalized, normalize

import pytest

from lib.data.characters import clean, lowered, unified
from lib.data.corpora import load_corpus
from lib.data.documents import Document, to_document
from lib.data.options import words_of
from lib.data.prepared import encode
from lib.data.vocabulary import Vocabulary
from lib.data.words import counted_words, need_all_letters, other_letters, split_words, tokenize
from lib.evaluation.metrics import limited_recall, longest_common_recall, rouge
from lib.papers.mem2mem.sections import CohanOptions
from tests.tools.disturbed_texts import DISTURBED, disturbed

CASES = json.loads((Path(__file__).parent / "cases" / "words.json").read_text(encoding="utf-8"))


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


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']}: {case['text']!a:.30}")
def test_texts_as_people_have_them(case):
    """Through the door, as a record, and given to the tokenizer as they are."""
    (sentence,) = to_document({"document": [case["text"]], "summary": "x"}).sentences
    lower = case.get("lower", False)
    words = words_of(sentence, lower)
    assert (len(words) == case["count"]) if "count" in case else (words == case["words"])
    assert words_of(case["text"], lower) == words == words_of(" ".join(words), lower)
    assert clean(sentence) == sentence == unified(sentence), "what was cleaned stays"


@pytest.mark.parametrize("way", DISTURBED)
def test_disturbed_papers_are_read_as_clean_ones(way):
    """What `tests.tools.disturbed_texts` measures scores by; one sentence of 200 may keep a hyphen."""
    documents = list(load_corpus("pmc-sample").split("val", 10))
    pairs = [p for d in documents for p in zip(d.sentences, disturbed(d, DISTURBED[way]).sentences, strict=True)]
    others = sum(a != b for a, b in pairs)
    assert others <= (len(pairs) / 200 if way == "line-end hyphens" else 0)


def test_ids_are_no_texts():
    """A name is what it is, whatever its characters; titles and sections are read."""
    record = {"id": "e\u0301\u200b", "title": "Caf\u00adé", "section_names": ["ﬁrst"], "sections": [["A b."]]}
    document = to_document({**record, "abstract_text": ["C."]})
    assert (document.id, document.title, document.section_names) == ("e\u0301\u200b", "Café", ["first"])


def test_lower_case():
    assert lowered("İZMİR I") == "izmir i" == lowered("i\u0307zmi\u0307r I"), "as its small letters are written"
    assert lowered("ΟΔΟΣ ÉTÉ") == "οδος été"


def test_counted_words():
    """ROUGE's, unless most letters are others: these texts had none, and a score of 0."""
    assert counted_words("The naïve β-cell, 3.5 LaTeX_1") == ["the", "na", "ve", "cell", "3", "5", "latex", "1"]
    assert counted_words("Модель GRU-2 «читает».") == ["модель", "gru", "2", "читает"]
    assert counted_words("यह हिन्दी है।") == ["यह", "हिन्दी", "है"]
    assert counted_words("模型GRU读テ。") == ["模", "型", "gru", "读", "テ"]
    assert counted_words("αβ ab") == ["ab"] and counted_words("αβγ ab") == ["αβγ", "ab"]
    assert counted_words("…") == counted_words("") == []
    assert counted_words("Модель GRU", all_letters=False) == ["gru"], "as a corpus in ASCII counts"
    assert counted_words("naïve 3.5", all_letters=True) == ["naïve", "3", "5"]
    assert counted_words("می\u200cخواهم") == counted_words("میخواهم"), "a joiner is no letter"
    assert counted_words("end of 3-\nThe next", all_letters=True) == ["end", "of", "3", "the", "next"], (
        "two sentences"
    )


# Texts of our own, two sentences each, in scripts with spaces between words.
SCRIPTS = {
    "English": "The river froze early. Nobody crossed it before spring.",
    "French": "L'été a été très chaud. Les élèves préparent leur fête à l'école.",
    "German": "Die Bäume wachsen langsam. Größere Äste fielen im März.",
    "Vietnamese": "Trời mưa rất lớn. Học sinh được nghỉ ở nhà.",
    "Vietnamese, decomposed": normalize("NFD", "Trời mưa rất lớn. Học sinh được nghỉ ở nhà."),
    "Turkish": "İzmir'de hava soğuktu. IŞIKLAR erken yandı.",
    "Polish": "Dzieci poszły do szkoły. Było zimno i mżyło.",
    "Greek": "Η θάλασσα είναι ήρεμη. Οι ψαράδες βγήκαν νωρίς.",
    "Cyrillic": "Река замёрзла рано. До весны её никто не переходил.",
    "Ukrainian": "П'ять човнів стояло біля берега. Їхні вітрила були білі.",
    "Arabic": "النهر طويل جدا. عبره الناس في الربيع؟",
    "Arabic with signs": "الكِتَابُ جَدِيدٌ. قَرَأَهُ الوَلَدُ مَرَّتَيْنِ.",
    "Persian": "می\u200cخواهم کتاب\u200cها را بخوانم. او نمی\u200cداند.",
    "Hebrew": "שָׁלוֹם לְכֻלָּם. הַנָּהָר קָפָא מֻקְדָּם.",
    "Hindi": "नदी का पानी ठंडा है। बच्चे किनारे पर खेलते हैं।",
    "Bengali": "নদীর জল ঠান্ডা। ছেলেরা সাঁতার কাটে।",
    "Tamil": "ஆற்றில் தண்ணீர் குறைவு. மழை வரும்.",
    "Malayalam": "പുഴയിൽ വെള്ളം കുറവാണ്. മഴ പെയ്യും.",
    "Sinhala": "ශ්\u200dරී ලංකාවේ ගඟ දිගයි. වැස්ස එයි.",
    "Korean": "강물이 일찍 얼었다. 봄까지 아무도 건너지 않았다.",
    "Georgian": "მდინარე ადრე გაიყინა. გაზაფხულამდე არავინ გადავიდა.",
    "Armenian": "Գետը շուտ սառեց։ Ոչ ոք չանցավ այն։",
    "Amharic": "ወንዙ ረጅም ነው። ልጆች በዳር ይጫወታሉ።",
    "Burmese": "မြစ်ရေ အေးသည်။ ကလေးများ ကစားသည်။",
    "Chinese": "河水很冷。孩子们在岸边玩3.5小时。",
    "Thai": "น้ำในแม่น้ำเย็นมาก เด็กๆ เล่นริมฝั่ง",
}


# More of our own, for how many of the words of a language hold a letter outside ASCII.
LANGUAGES = {
    "Dutch": [
        "De kinderen gingen niet naar school omdat het de hele dag regende.",
        "Het model vat lange artikelen samen en neemt moeilijke woorden over uit de bron.",
        "Zij vonden één oplossing voor beide problemen.",
    ],
    "German": [
        "Die Bäume in unserem Garten wachsen langsam, weil der Boden zu trocken ist.",
        "Wir zeigen, dass ein kürzerer Text oft genügt, um die wichtigsten Ergebnisse zu verstehen.",
        "Das Modell schreibt Zusammenfassungen, ohne den ganzen Aufsatz zu lesen.",
    ],
    "Swedish": [
        "Barnen gick inte till skolan eftersom det regnade hela dagen.",
        "Modellen sammanfattar långa artiklar och kopierar ord som den inte känner till.",
    ],
    "Italian": [
        "La città è più fredda del solito perché non c'è sole da una settimana.",
        "Il modello riassume testi lunghi e copia le parole che non conosce.",
        "I risultati mostrano che la memoria aiuta la scrittura.",
    ],
    "Spanish": [
        "Los niños estudiaron la corrección de errores durante toda la mañana.",
        "El modelo resume artículos largos y copia las palabras que no conoce.",
        "La lluvia cayó sobre los campos y el río creció hasta el puente.",
    ],
    "French": [
        "Les élèves ont préparé une présentation sur la météo de l'été dernier.",
        "Le résultat dépend de la quantité d'eau que les plantes reçoivent chaque jour.",
        "Nous montrons que ce modèle peut lire de longs articles et en garder les idées.",
    ],
    "Polish": [
        "Dzieci poszły do szkoły, chociaż padał deszcz i było zimno.",
        "Model streszcza długie artykuły i kopiuje słowa, których nie zna.",
    ],
    "Turkish": [
        "Öğrenciler dün akşam kütüphanede uzun bir rapor hazırladı.",
        "İstanbul'da hava çok soğuk olduğu için yollar kapandı.",
        "Model uzun metinleri özetler ve bilmediği sözcükleri kopyalar.",
    ],
    "Vietnamese": [
        "Trời mưa lớn nên học sinh được nghỉ học hôm nay.",
        "Mô hình tóm tắt những bài báo dài và chép lại các từ lạ.",
    ],
}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("lower", [True, False])
def test_a_perfect_copy_has_the_full_score(script, lower):
    """A summary that says what the reference says, in ids of a vocabulary and in words again."""
    document = to_document({"document": SCRIPTS[script], "summary": SCRIPTS[script]})
    options = CohanOptions(lower=lower, vocab_size=12)
    example = options.example(document)
    vocabulary = Vocabulary(sorted(set(example.summary))[::2])  # every other word is copied
    encoded = encode(example, vocabulary, options.summary_tokens)
    copy = vocabulary.sentences(encoded.target.tolist(), encoded.unknown)
    assert rouge([copy], [document.summary]).tolist() == [[pytest.approx(100)] * 3]
    raw = rouge([copy], [[SCRIPTS[script]]])
    assert raw[0, :2].tolist() == [pytest.approx(100)] * 2, "also against the text as it came"


def test_letters_that_ascii_has_not():
    """Which words ROUGE counts is a matter of a corpus, and a Greek letter by itself is a sign."""
    shares = {script: other_letters([text]) for script, text in SCRIPTS.items()}
    assert shares["English"] == 0 and min(n for script, n in shares.items() if script != "English") > 0.2
    assert other_letters(["The β-subunit, TGFβ1 and 5 µM of α."]) == 0 == other_letters(["3 ½ and 5 m²"])
    assert other_letters([]) == 0
    assert other_letters(["a naïve model of ten words, and so on"]) == pytest.approx(1 / 9)
    rounded = {language: round(100 * other_letters(texts)) for language, texts in LANGUAGES.items()}
    expected = (3, 8, 9, 14, 19, 26, 45, 52, 92)
    assert list(rounded.values()) == list(expected)
    english = ["Nothing else was seen in any of these forty naïve patients."] * 2 + [SCRIPTS["English"]] * 4
    assert not need_all_letters(english) and need_all_letters([*english, SCRIPTS["German"], SCRIPTS["Cyrillic"]])
    for name in ("aclsum", "pmc-sample"):
        assert other_letters(s for d in load_corpus(name).split("test", 30) for s in d.summary) < 0.02


def test_a_document_in_other_letters_counts_in_a_corpus_of_english():
    """A copy has the full score and another text has none, however few such documents a corpus has."""
    english, russian = [[SCRIPTS["English"]]] * 40, [SCRIPTS["Cyrillic"]]
    references = [*english, russian]
    assert not need_all_letters(s for reference in references for s in reference)
    assert rouge(references, references).min() == pytest.approx(100)
    assert rouge([*english, ["Другого здесь нет"]], references)[-1].max() == 0
    assert longest_common_recall(["\n".join(r) for r in references], references)[-1] == pytest.approx(100)
    assert limited_recall([russian] * 41, [[r] for r in references], limit=1000)[-1].min() == pytest.approx(100)


# -------------------------------------------------------------------------------- English stays as it was

_MORE_THAN_LETTERS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\ufb00-\uffff]"
)


def in_plain_letters(text: str) -> bool:
    """Whether a text has no marks, no characters that are not seen, and no other forms of letters."""
    marks = ("Mn", "Mc", "Me", "Cf")
    return text.isascii() or (
        is_normalized("NFC", text)
        and not _MORE_THAN_LETTERS.search(text)
        and not any(category(c) in marks for c in text)
    )


def test_words_of_english_papers_are_those_of_the_first_version():
    """2.8 million tokens of 16,569 paragraphs, cased and lower-cased, as version 0.1.0 cut them."""
    sha, counts = hashlib.sha256(), [0, 0]
    folder = resources.files("aclsum") / "dataset" / "paper_jsons"
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        paper = json.loads(path.read_text(encoding="utf-8"))
        texts = (paper["title"], paper["abstract"], *(part["text"] for part in paper["pdf_parse"]["body_text"]))
        for text in filter(in_plain_letters, texts):
            counts[0] += 1
            for words in (tokenize(text), tokenize(text.lower())):
                counts[1] += len(words)
                sha.update("\n".join(words).encode() + b"\0")
    assert (counts, sha.hexdigest()[:16]) == ([16_569, 2_792_990], "a1bb30aad6751746")


def test_words_of_ascii_are_found_by_one_rule():
    """A regular expression of our first version, on what the biomedical papers have."""
    rule = re.compile(
        r"<\w+>|@\w+|\d+(?:[.,:]\d+)*|[^\W\d_]+?(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|"
        r"[^\W_]+|\.\.\.|[^\w\s]|_+",
        re.IGNORECASE,
    )
    documents = load_corpus("pmc-sample").split("test", 40)
    sentences = [s for d in documents for s in chain(d.sentences, d.summary) if s.isascii()]
    assert len(sentences) > 1_000
    for sentence in sentences:
        assert tokenize(sentence) == rule.findall(sentence)
        assert counted_words(sentence) == re.findall("[a-z0-9]+", sentence.lower())


# -------------------------------------------------------------------------------- tokenised text


def test_tokenised_text_stays():
    text = "the patient 's heart ( 3 cm ) was n't seen ."
    assert tokenize(text) == text.split()


def test_tokenised_text_is_split_at_white_space():
    """Hyphenated words, shares and abbreviations stay whole; no symbol of a vocabulary comes from a text."""
    text = "the drought-hit u.s. state lost 12% , i.e. `` a lot '' ."
    assert split_words(text) == text.split() != tokenize(text)
    assert split_words("ends in [EOS] or [UNK] .") == ["ends", "in", "[", "EOS", "]", "or", "[", "UNK", "]", "."]
    assert words_of("A-B ﬁ\u00adt", lower=True, tokenised=True) == ["a-b", "fit"]
    document = Document("x", "", [""], [[text]], [text], tokenised=True)
    example = CohanOptions().example(document)
    assert example.words == example.summary == text.split() and example.tokenised


def test_a_word_in_three_lines_is_whole():
    """What was cleaned stays; whether a hyphen stays is asked of each."""
    assert clean("photo-\nsyn-\nthesis") == "photosynthesis" and clean("0-\n0-\n0") == "0-0-0"
    assert clean("The state-\nof-the-\nart is old.") == "The state-of-the-art is old."


def test_a_hyphen_before_a_usual_second_part_stays():
    """Unless what stands before it is a prefix, or too short for a word."""
    assert clean("a drug-\ninduced, size-\nbased map") == "a drug-induced, size-based map"
    assert clean("a de-\nbased, un-\nlinked, in-\nduced map") == "a debased, unlinked, induced map"
    assert (
        clean("an over-\npriced, under-\nvalued, super-\nscale map") == "an overpriced, undervalued, superscale map"
    )


def test_a_hyphen_behind_a_digit_stays():
    assert clean("the p5-\nspan") == "the p5-span" and clean("the 5p-\nspan") == "the 5pspan"


def test_long_texts_are_cut_in_time():
    """A text without a space, and one of nothing but hyphens, take no longer than others of their length."""
    for text in (
        "河水很冷" * 20_000,
        "น้ำเย็น" * 10_000,
        "a-" * 40_000 + "-\nb",
        "a-\n" * 20_000,
        "gattaca" * 20_000,
        "Ａ，" * 20_000,
    ):
        begun = time.perf_counter()
        assert tokenize(text)
        assert time.perf_counter() - begun < 2, text[:6]
