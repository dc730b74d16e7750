"""Summaries for people: forms of words, capitals, spaces, whole sentences; and each token's part in them."""

import pytest

from lib.data.corpora import load_corpus
from lib.data.options import words_of
from lib.data.words import tokenize
from lib.decoding.readable import Forms, readable, spaces
from lib.decoding.reading import surfaces

TEXT = [
    "The CRISPR/Cas9 system cuts DNA in Zm4CL (EU491511).",
    "Pv4CL1 was cut by the CRISPR/Cas9 system at pH 7 and by p53.",
    "In maize, dr. Ada Byron's group (at the WHO) saw 37°C.",
    "Groups who read e.g. the U.S. report saw 5 × 10^5 cells.",
    "We asked E. coli for state-of-the-art help, and E. coli helped.",
    "Yields rose by 3.2% at http://yields.org/maize.",
    'They call it "good" bread.',
    "The Tessera Copper Co has two copper mines, as the WHO says.",
]


def lower(sentence):
    return words_of(sentence, lower=True)


def hashed(sentence):
    return ["".join("#" if c.isdigit() else c for c in word) for word in lower(sentence)]


def by_word(sentences):
    return [[f" {word}" for word in sentence.split()] for sentence in sentences]


def people(*sentences, text=TEXT, words=lower, cut=False, **how):
    """What people read of a summary in words."""
    return readable(by_word(sentences), Forms(text, words, **how), spaced=False, cut=cut).sentences


@pytest.mark.parametrize(
    ("written", "read"),
    [
        # forms of the text
        ("the crispr / cas9 system cut pv4cl1 .", "The CRISPR/Cas9 system cut Pv4CL1."),
        ("zm4cl ( eu491511 ) was cut .", "Zm4CL (EU491511) was cut."),
        ("pv4cl1 was cut .", "Pv4CL1 was cut."),
        ("groups of the who ( who ) and groups who read .", "Groups of the WHO (WHO) and groups who read."),
        ("it was ada byron 's .", "It was Ada Byron's."),
        ("we saw maize in the system .", "We saw maize in the system."),
        ("many copper mines .", "Many copper mines."),
        # a word that begins a sentence of the text has no capital inside of one
        ("here yields in maize rose .", "Here yields in maize rose."),
        ("it is dna .", "It is DNA."),
        ("the wheat was genotyped .", "The wheat was genotyped."),
        # capitals at the start
        ("a system .", "A system."),
        ("( the system ) .", "(The system)."),
        ("p53 was cut .", "p53 was cut."),
        ("ph was 7 .", "pH was 7."),
        ("p - values .", "p-values."),
        ("24 mice .", "24 mice."),
        # marks and spaces
        ("37 ° c , or 7 ; and : so !", "37°C, or 7; and: so!"),
        ("yields rose by 3.2 % .", "Yields rose by 3.2%."),
        ("p < 0.05 and n = 3 .", "p < 0.05 and n = 3."),
        ('it is " good " bread .', 'It is "good" bread.'),
        ('a " wild " guess .', 'A "wild" guess.'),
        ("it does n't , they ’re .", "It doesn't, they’re."),
        ("cross - sectional and / or so .", "Cross-sectional and/or so."),
        ("a state - of - the - art [ system ] .", "A state-of-the-art [system]."),
        ("5 × 10 ^ 5 cells .", "5 × 10^5 cells."),
        ("( not closed .", "(Not closed."),
        ("这 是 文 本 。", "这是文本。"),
        ("यह पाठ है ।", "यह पाठ है।"),
        ("the 3 ′ - end , 5 ′ / 3 ′ .", "The 3′-end, 5′/3′."),
        # marks that a model repeats
        ("7 ° ° c , , so . .", "7°C, so."),
        # symbols
        ("<digdig> of <dig mice .", "[number] of [number] mice."),
        ("<dig> mice , <dig> % of <dig> .", "[number] mice, [number]% of [number]."),
        ("it is known ( <cit> ) @xcite .", "It is known ([citation]) [citation]."),
        ("we have @xmath12 and @formula .", "We have [formula] and [formula]."),
        ("mice -lrb- old -rrb- are `` good '' .", 'Mice (old) are "good".'),
    ],
)
def test_a_sentence(written, read):
    assert people(written) == [read]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        # a full stop that ends no sentence
        (("we asked e .", "coli for help ."), ["We asked E. coli for help."]),
        (("the u .", "s .", "report ."), ["The U.S. report."]),
        (("a u .", "k .", "report ."), ["A U.K. report."]),
        (("groups , e .", "g .", "mice ."), ["Groups, e.g. mice."]),
        (("see http : / / yields .", "org / maize ."), ["See http://yields.org/maize."]),
        (("we saw dr .", "ada ."), ["We saw dr. Ada."]),
        # a sentence that ends among the words of another
        (("the system cuts dna . yields in maize rose .",), ["The system cuts DNA. Yields in maize rose."]),
        (("they saw e.g. maize vs . mice .",), ["They saw e.g. maize vs. mice."]),
        # a last sentence that was cut
        (("the system .", "they cut"), ["The system."]),
        (("the system ?", 'it is " good . "'), ["The system?", 'It is "good."']),
        (("they cut the",), ["They cut the …"]),
        ((), []),
        (("maize rises", "mice fall"), ["Maize rises", "Mice fall …"]),
    ],
)
def test_sentences(written, read):
    assert people(*written, cut=True) == read


def test_a_headline_is_whole_where_it_was_not_cut():
    assert people("maize rises") == ["Maize rises"]


def test_titles_and_capitals_say_little_of_a_form():
    text = ["Reading Long Papers With Small Models.", "PROFITS RISE AT THE IBM PLANT.", "We read papers."]
    assert people("reading long papers at the plant .", text=text) == ["Reading long papers at the plant."]


def test_a_word_behind_a_name_has_the_form_that_it_has_there():
    text = [
        "Of the United States, two states and more states pay.",
        "For this Food Report food of the food report paid.",
    ]
    assert people("united states .", "the food report .", text=text) == ["United States.", "The food report."]


def test_a_tokenised_word_with_hyphens_begins_with_a_capital():
    text = ["The farmers saw drought-hit land and m-rna."]
    assert people("drought-hit land .", "m-rna .", text=text, words=str.split) == ["Drought-hit land.", "m-rna."]


def test_a_number_in_hashes_is_one_that_the_text_has_alone():
    text = ["It made 45 mln dlrs in 1987.", "It was 12 in 1986 and 1987."]
    assert people("made 12 ## mln in ####", text=text, words=hashed) == ["Made 12 [number] mln in [number]"]
    assert people("made ## .# mln", text=text[:1], words=hashed) == ["Made 45 .[number] mln"]


def test_words_of_a_model_that_writes_capitals_stay():
    sentences = people("The Crispr / Cas9 System In It .", lower=False, words=tokenize)
    assert sentences == ["The Crispr/Cas9 System In It."]


def test_spaces_of_a_tokenised_text_say_nothing():
    text = ["the crispr / cas9 system ( dna ) was cut , and so on .", "it was dna ."]
    assert people("the crispr / cas9 ( dna ) , and so on .", text=text) == ["The crispr/cas9 (dna), and so on."]


def test_pieces_keep_their_places():
    """Their spaces are the model's, their letters the text's; joined they are the sentences."""
    pieces = [
        [" the", " cris", "pr", "/", "cas", "9", " of", " z", "m4cl", "."],
        [" <", "dig", ">%", " e."],
        [" coli."],
    ]
    shown = readable(pieces, Forms(TEXT, lower), spaced=True)
    assert shown.sentences == ["The CRISPR/Cas9 of Zm4CL.", "[number]% E. coli."]
    assert shown.tokens[0] == [" The", " CRIS", "PR", "/", "Cas", "9", " of", " Z", "m4CL", "."]
    assert shown.tokens[1] == [" [number]", "", "%", " E.", " coli."]


def test_half_a_symbol_of_pieces_is_a_number():
    pieces = [[" it", " rose", " <", "dig", " mice", " by", " <", ">", " days", " if", " p", " <", " dig", "."]]
    shown = readable(pieces, Forms(TEXT, lower), spaced=True)
    assert shown.sentences == ["It rose [number] mice by [number] days if p < dig."]
    assert len(shown.tokens[0]) == len(pieces[0])


def test_pieces_have_no_space_before_marks_that_close():
    pieces = [[" it", " rose", " ,", " by", " <", "dig", ">", " %", " ."]]
    assert readable(pieces, Forms(TEXT, lower), spaced=True).sentences == ["It rose, by [number]%."]


def test_every_token_stands_in_the_sentences():
    summary = by_word(["the crispr / cas9 system .", "we asked e .", "coli .", "they cut"])
    shown = readable(summary, Forms(TEXT, lower), spaced=False)
    assert sum(map(len, shown.tokens)) == sum(map(len, summary)) and len(shown.tokens) == 3
    assert ["".join(tokens).strip() for tokens in shown.tokens] == [*shown.sentences, "They cut"]


def test_spaces_are_as_in_papers():
    places = right = 0
    for document in load_corpus("pmc-sample").split("test", 10):
        for sentence in document.sentences:
            words = tokenize(sentence)
            own = [surface.startswith(" ") for surface in surfaces(sentence, words)]
            places += len(words) - 1
            right += sum(a == b for a, b in zip(spaces(words)[1:], own[1:]))
    assert places > 30_000 and right / places > 0.98
