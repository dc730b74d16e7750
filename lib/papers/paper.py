"""A paper as data. A paper's folder exports one `PAPER`, which the tests check."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from lib.data.batch import EncodedDocument
from lib.data.corpora import Corpus, check_unpublished, load_corpus
from lib.data.documents import Document
from lib.data.options import Options
from lib.data.prepared import PreparedCorpus, is_prepared
from lib.data.registry import is_name
from lib.decoding.search import DecodeConfig
from lib.evaluation.baselines import baselines, lead
from lib.papers.tables import Kept, PageTable, RunFigure, RunSpec, Samples, Table, slug
from lib.system.errors import InputError, did_you_mean, one_of
from lib.system.fields import field_names
from lib.training.config import TrainConfig
from lib.training.folder import Recipe


@dataclass(frozen=True)
class Variant:
    """A model of a paper: a class, and what differs from the preset in its config and in what it reads."""

    kind: Any  # a class of models, with a dataclass `Config`
    config: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)  # values, or functions of the preset's (`at_least`)
    train: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # preset -> what differs in its training
    counted: Mapping[str, Callable[[PreparedCorpus], Any]] = field(default_factory=dict)  # of the config, where None
    presets: Mapping[str, "Preset"] = field(default_factory=dict)  # its own, where it reads with other options
    start: Callable[[Any, PreparedCorpus], None] | None = None  # sets first weights of a model from a corpus


def at_least(value: int) -> Callable[[int], int]:
    """An option that is the preset's, or this one if that is less."""
    return partial(max, value)


@dataclass(frozen=True)
class Preset:
    """Settings of a run: preprocessing, model sizes, training, decoding."""

    options: Any  # the paper's own `Options`
    config: Mapping[str, Any] = field(default_factory=dict)  # of whichever variant has the field
    variant: str = ""  # a row of the paper's tables; empty: its own model
    train: TrainConfig = TrainConfig()
    decode: DecodeConfig = DecodeConfig()
    documents: int | None = None  # at most so many of each split


def text_baselines(
    documents: Sequence[Document], encoded: Sequence[EncodedDocument], prepared: PreparedCorpus
) -> dict[str, list[list[str]]]:
    """Lead, LexRank and the oracle over the whole texts, Lead and LexRank as long as training references; Lead-3 and
    Lead-10."""
    systems = baselines(documents, [document.reference for document in prepared["train"]])
    return {**systems, **{f"lead-{n}": [lead(d.sentences, n) for d in documents] for n in (3, 10)}}


@dataclass(frozen=True)
class Paper:
    """A paper. Its name is that of its folder, of its page in `notebooks`, and on the command line."""

    name: str
    title: str
    variants: Mapping[str, Variant]
    usual: str  # the paper's own model, of the variants
    presets: Mapping[str, Preset]
    dataset: str  # of the demo: no download
    baselines: Callable[..., dict[str, list[list[str]]]] = text_baselines  # of texts, the same in ids, the corpus
    comparison: Mapping[str, str] = field(default_factory=dict)  # preset -> the preset beside other papers' models
    tables: Mapping[str, Table] = field(default_factory=dict)
    page_tables: Mapping[str, PageTable] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)  # of the paper -> the name under which its page draws it
    samples: Mapping[str, Samples] = field(default_factory=dict)
    run_figures: Mapping[str, RunFigure] = field(default_factory=dict)
    made_up: Callable[[], list[Document]] | None = None  # texts to show, where its models do not read papers
    kept: Kept | None = None

    def options_class(self, variant: str) -> type[Options]:
        """The class of the options of one of its variants."""
        presets = self.variants[variant].presets or self.presets
        return type(next(iter(presets.values())).options)

    @property
    def made_of_runs(self) -> tuple["Table | Samples | RunFigure", ...]:
        return (*self.tables.values(), *self.samples.values(), *self.run_figures.values())

    def is_kept(self, run: RunSpec) -> bool:
        """Whether a row's run is of the model of which the project keeps a trained run."""
        variant = self.presets[run.variant].variant if run.preset_row else run.variant
        return self.kept is not None and (variant or self.usual) == self.usual

    @property
    def kept_runs(self) -> dict[str, str]:
        """The names of the folders of the trained runs that the project keeps -> their variants."""
        if self.kept is None:
            return {}
        return {self.name: self.usual, **self.kept.also}

    def title_of(self, variant: str) -> str:
        """Title of a run that the project keeps: the paper's own of the variant that it is known by, otherwise the
        variant's."""
        return self.title if variant == self.usual else variant

    def run_name(self, run: RunSpec, preset: str) -> str:
        """Name of a run's folder. Rows that differ only in how they are scored share it."""
        size = dict(run.vocabulary).get(preset, "")
        return "--".join(filter(None, (self.name, slug(run.variant), str(size))))

    def run_arguments(self, run: RunSpec, preset: str) -> list[str]:
        """Arguments of `python -m lib.train` that say what is trained."""
        arguments = [self.name, "--preset", run.preset(preset)]
        if run.variant and not run.preset_row:
            arguments += ["--variant", run.variant]
        if preset in dict(run.vocabulary):
            arguments += ["--options.vocab-size", str(dict(run.vocabulary)[preset])]
        return arguments

    def setup(self, preset: str, variant: str | None = None, options: Mapping | None = None, **train) -> "Setup":
        """A preset in one of the paper's variants.

        variant: None is the preset's. options, train: fields in place of the preset's; None keeps the preset's.
        Raises ValueError for a name that does not exist.
        """
        chosen = self.presets[one_of(preset, self.presets, "preset")]
        name = one_of(variant or chosen.variant or self.usual, self.variants, "variant")
        model, changes = self.variants[name], _given(options or {})
        if model.presets:
            chosen = model.presets[one_of(preset, model.presets, f"preset of {name}")]
        _known(f"{self.name}: options", set(changes), field_names(self.options_class(name)))
        _known(f"{self.name}: training", set(train), field_names(TrainConfig))
        for option, value in model.options.items():
            if option not in changes:
                changes[option] = value(getattr(chosen.options, option)) if callable(value) else value
        training = replace(chosen.train, **{**model.train.get(preset, {}), **_given(train)})
        config = {**chosen.config, **model.config}
        return Setup(
            self, preset, name, replace(chosen.options, **changes), config, training, chosen.decode, chosen.documents
        )


@dataclass(frozen=True)
class Setup:
    """A preset of a paper in one of its variants: what is trained, and how."""

    paper: Paper
    preset: str
    variant: str
    options: Any
    config: Mapping[str, Any]  # fields of the model's config, and perhaps of other variants'
    train: TrainConfig
    decode: DecodeConfig
    documents: int | None

    @property
    def recipe(self) -> Recipe:
        """The part of it that a run saves beside the options."""
        weights = "average" if self.train.keep_best > 1 else "best"
        return Recipe(self.paper.name, self.variant, self.preset, self.decode, weights)

    @property
    def shared(self) -> set[str]:
        """Fields that the options and the model's config both have: the options say them."""
        return field_names(type(self.options)) & field_names(self.kind.Config) - {"vocab_size"}

    def open_corpus(
        self, dataset: str, errors: str = "raise", limit: int | None = None, test: str = "", **keep
    ) -> PreparedCorpus:
        """A corpus by name or folder, prepared; a folder that is prepared already is taken as it is, with the records
        that `errors` left out then.

        test: another corpus, by name or folder, to take the test documents from. Raises CorpusError, and ValueError
        for a prepared folder with other options, or of which a limit or other test documents are asked for.
        """
        if not is_name(dataset) and is_prepared(dataset):
            if test:
                raise InputError(f"{dataset} is prepared already: its test documents cannot be exchanged")
            if limit is not None:
                raise InputError(f"{dataset} is prepared already: a limit can be set on the corpus itself alone")
            return _told(self._as_asked(PreparedCorpus.load(dataset, type(self.options)), dataset))
        return self.prepare(corpus_for(dataset, errors, test), limit, **keep)

    def _as_asked(self, corpus: PreparedCorpus, folder: str) -> PreparedCorpus:
        """A corpus from a folder. Raises ValueError where it was prepared with other options than the setup's."""
        for name in (f.name for f in fields(self.options) if f.name not in corpus.options.of_corpus):
            prepared, asked = (getattr(options, name) for options in (corpus.options, self.options))
            if prepared != asked:
                raise InputError(
                    f"{folder} was prepared with {name} {prepared!r}, not {asked!r}: ask for what it was prepared "
                    f"with (preset, variant, --options.{name.replace('_', '-')}), or give the corpus itself"
                )
        return corpus

    def prepare(self, corpus: Corpus, limit: int | None = None, **keep) -> PreparedCorpus:
        """A corpus's documents in ids, at most `limit` of each split, and texts beside them; what a reader should
        know of this copy goes to standard error. Raises CorpusError for a `folder` where texts that may not be
        published would be."""
        if limit is not None and limit < 1:
            raise InputError(f"limit must be at least 1, not {limit}; without it there is none")
        if folder := keep.get("folder"):
            check_unpublished(Path(folder) / "prepared.json", corpus.name)
        prepared = self.options.prepare(corpus, limit or self.documents, **keep)
        if corpus.note:
            _tell_once(f"{corpus.name}: {corpus.note}")
        return _told(replace(prepared, name=corpus.name))  # the cache may know it by another path

    @property
    def kind(self) -> Any:
        """The class of the model."""
        return self.paper.variants[self.variant].kind

    def model_config(self, **corpus) -> Any:
        """The model's config; `corpus`: what the corpus says of it.

        Raises ValueError for values that do not fit each other.
        """
        names = field_names(self.kind.Config)
        values = {**self.config, **{name: getattr(self.options, name) for name in self.shared}, **corpus}
        return self.kind.Config(**{name: value for name, value in values.items() if name in names})

    def build(self, corpus: PreparedCorpus) -> Any:
        """The model for a corpus's vocabulary, with the seed's weights.

        Raises ValueError when the corpus was prepared for another variant (another window, unit or graph).
        """
        varied = {name for variant in self.paper.variants.values() for name in variant.options}
        for name in sorted((varied | self.shared) & field_names(type(self.options))):
            prepared, asked = (getattr(options, name) for options in (corpus.options, self.options))
            if prepared != asked:
                raise InputError(f"{corpus.name} was prepared with {name} {prepared}, not {asked}: prepare it anew")
        counted = self.paper.variants[self.variant].counted
        theirs = {name: count(corpus) for name, count in counted.items() if self.config.get(name) is None}
        config = self.model_config(**theirs, vocab_size=len(corpus.vocabulary))
        torch.manual_seed(self.train.seed)
        model = self.kind(config)
        if start := self.paper.variants[self.variant].start:
            start(model, corpus)
        model.encoder_digest = corpus.encoder.digest()  # `load_weights` refuses those of another vocabulary
        return model


def corpus_for(dataset: str, errors: str = "raise", test: str = "") -> Corpus:
    """A corpus's texts, with another's test documents where `test` names one."""
    corpus = load_corpus(dataset, errors)
    return corpus.tested_on(load_corpus(test, errors)) if test else corpus


def _told(corpus: PreparedCorpus) -> PreparedCorpus:
    """Tell a reader what was left out of a corpus, and which ids come again; give the corpus."""
    if corpus.remarks:
        _tell_once(f"{corpus.name}: {corpus.remarks}")
    return corpus


@cache
def _tell_once(text: str) -> None:
    print(text, file=sys.stderr)


def _known(where: str, names: set[str], known: set[str]) -> None:
    for name in sorted(names - known):
        raise InputError(f"{where} has no field {name!r}{did_you_mean(name, known)}")


def _given(values: Mapping) -> dict:
    return {key: value for key, value in values.items() if value is not None}
