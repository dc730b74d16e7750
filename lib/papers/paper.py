"""A paper as data: variants of models and presets of their sizes. A paper's folder exports one
`PAPER`."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import torch

from lib.data.corpus import Corpus, load_corpus
from lib.data.options import Options
from lib.data.prepared import DESCRIPTION, PreparedCorpus
from lib.decoding.config import DecodeConfig
from lib.system.errors import InputError, one_of
from lib.system.files import say_once, trained_folder
from lib.system.settings import field_names
from lib.training.config import TrainConfig
from lib.training.folder import Recipe, load_weights, weights_digest

if TYPE_CHECKING:
    from lib.decoding.run import Run


@dataclass(frozen=True)
class Variant:
    """A model of a paper: a class, and what differs from the preset."""

    model: type | str  # a class of models, with a dataclass `Config`; or its name (`imported`)
    config: Mapping[str, Any] = field(default_factory=dict)
    # values, or functions of the preset's (`at_least`)
    options: Mapping[str, Any] = field(default_factory=dict)
    # preset -> what differs in its training
    train: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # its own, where it reads with other options
    presets: Mapping[str, "Preset"] | str = field(default_factory=dict)
    # makes a model that depends on more of a corpus
    make: Any = None

    @property
    def kind(self) -> Any:
        """The class of the model."""
        return imported(self.model)

    def presets_of(self, paper: "Paper") -> Mapping[str, "Preset"]:
        """Return the presets that the variant is trained with: its own, or the paper's."""
        return imported(self.presets) or paper.presets


def imported(value: Any) -> Any:
    """Return the object that a string such as "lib.models.tlm:TLM" names; anything else is itself.

    A paper names what only some of its variants need, so that the others do not import it.
    """
    return resolve_name(value) if isinstance(value, str) else value


def at_least(value: int) -> Callable[[int], int]:
    """Make an option at least `value` where the preset has less."""
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


def read_presets(
    path: Path, options: Callable[[], Options], decode: Callable[[], DecodeConfig] = DecodeConfig
) -> dict[str, Preset]:
    """Read presets from a TOML file: fields that differ from the defaults, or from the preset named
    `base`."""
    presets: dict[str, Preset] = {}
    for name, record in tomllib.loads(path.read_text(encoding="utf-8")).items():
        base = presets[record["base"]] if "base" in record else Preset(options(), decode=decode())
        presets[name] = Preset(
            options=replace(base.options, **_fields(record, "options")),
            config={**base.config, **_fields(record, "model")},
            variant=record.get("variant", base.variant),
            train=replace(base.train, **_fields(record, "train")),
            decode=replace(base.decode, **_fields(record, "decode")),
            documents=record.get("documents", base.documents),
        )
    return presets


def _fields(record: dict[str, Any], part: str) -> dict[str, Any]:
    """Values of TOML as fields have them: "none" for None, which TOML lacks, and tuples."""
    values = {}
    for name, value in record.get(part, {}).items():
        if value == "none":
            value = None
        values[name] = tuple(value) if isinstance(value, list) else value
    return values


@dataclass(frozen=True)
class Paper:
    """A paper. Its name is that of its folder, of its page in `notebooks`, and on the command
    line."""

    name: str
    title: str
    variants: Mapping[str, Variant]
    usual: str  # the paper's own model, of the variants
    presets: Mapping[str, Preset]
    dataset: str  # of the demo: no download
    # of texts, the same in ids, the corpus
    baselines: Callable[..., dict[str, list[list[str]]]] | str = (
        "lib.evaluation.baselines:text_baselines"
    )
    trained: str = ""  # the name of its run in `trained`, where it is not the paper's

    @property
    def shipped(self) -> Path:
        """The folder of the paper's run that comes with the project."""
        return trained_folder(self.trained or self.name)

    def setup(
        self,
        preset: str,
        variant: str | None = None,
        options: Mapping[str, Any] | None = None,
        **train: Any,
    ) -> "Setup":
        """Find a preset in one of the paper's variants.

        variant: None is the preset's. options, train: fields that replace the preset's; None keeps
        the preset's. Raises InputError for a name that does not exist.
        """
        chosen = self.presets[one_of(preset, self.presets, "preset")]
        name = one_of(variant or chosen.variant or self.usual, self.variants, "variant")
        model = self.variants[name]
        if model.presets:
            own = model.presets_of(self)
            chosen = own[one_of(preset, own, f"preset of {name}")]
        # The caller's options come before the variant's, and these before the preset's.
        changes = _without_none(options or {})
        for field_name, value in model.options.items():
            if field_name not in changes:
                old = getattr(chosen.options, field_name)
                changes[field_name] = value(old) if callable(value) else value
        training = {**model.train.get(preset, {}), **_without_none(train)}
        return Setup(
            paper=self,
            preset=preset,
            options=replace(chosen.options, **changes),
            config={**chosen.config, **model.config},
            variant=name,
            train=replace(chosen.train, **training),
            decode=chosen.decode,
            documents=chosen.documents,
        )


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Setup(Preset):
    """A preset of a paper in one of its variants: what is trained, and how."""

    paper: Paper
    preset: str  # its name
    start: "Run | None" = None  # whose vocabularies and weights training begins with

    @property
    def kind(self) -> Any:
        """The class of the model."""
        return self.paper.variants[self.variant].kind

    @property
    def recipe(self) -> Recipe:
        """The part of it that a run saves beside the options."""
        weights = "average" if self.train.keep_best > 1 else "best"
        start: dict[str, Any] = {}
        if run := self.start:
            start = {"run": run.folder.name, "weights": weights_digest(run.model)}
            start |= {"updates": run.updates, "hours": round(run.all_hours, 2)}
        return Recipe(self.paper.name, self.variant, self.preset, self.decode, weights, start)

    @property
    def shared(self) -> set[str]:
        """Fields that the options and the model's config both have: the options determine them."""
        return field_names(type(self.options)) & field_names(self.kind.Config) - {"vocab_size"}

    def open_corpus(
        self,
        dataset: str,
        errors: str = "raise",
        limit: int | None = None,
        test: str = "",
        progress: bool = True,
    ) -> PreparedCorpus:
        """Prepare a corpus by name or folder; a folder that `PreparedCorpus.save` wrote is taken as
        it is.

        errors: "raise" or "skip" malformed records. test: another corpus to take the test documents
        from.
        """
        if (Path(dataset) / DESCRIPTION).exists():
            return PreparedCorpus.load(dataset, type(self.options))
        return self.prepare(corpus_for(dataset, errors, test), limit, progress)

    def prepare(
        self, corpus: Corpus, limit: int | None = None, progress: bool = True
    ) -> PreparedCorpus:
        """Turn a corpus's documents into ids, at most `limit` of each split; remarks go to standard
        error."""
        if self.start:
            corpus = replace(corpus, encoder=self.start.encoder)
        prepared = self.options.prepare(corpus, limit or self.documents, progress)
        for remark in filter(None, (corpus.note, prepared.remarks)):
            say_once(f"{corpus.name}: {remark}")
        return replace(prepared, name=corpus.name)  # the cache may know it by another path

    def model_config(self, **corpus: Any) -> Any:
        """Make the model's config. corpus: fields that follow from the corpus."""
        shared = {name: getattr(self.options, name) for name in self.shared}
        values = {**self.config, **shared, **corpus}
        # A preset may have fields of other variants.
        names = field_names(self.kind.Config)
        return self.kind.Config(**{name: value for name, value in values.items() if name in names})

    def build(self, corpus: PreparedCorpus) -> Any:
        """Make the model for a corpus's vocabulary, with the seed's weights or those of the run
        that it starts from.

        Raises InputError when the corpus was prepared for another variant (another window, unit or
        graph), RunError when the run has other sizes or another vocabulary.
        """
        varied = {name for variant in self.paper.variants.values() for name in variant.options}
        for name in sorted((varied | self.shared) & field_names(type(self.options))):
            prepared = getattr(corpus.options, name)
            asked = getattr(self.options, name)
            if prepared != asked:
                option = f"--options.{name.replace('_', '-')}"
                raise InputError(
                    f"{corpus.name} was prepared with {name} {prepared!r}, not {asked!r}: prepare "
                    f"it anew, or ask for the same (preset, variant, {option})"
                )
        config = self.model_config(vocab_size=len(corpus.vocabulary))
        make = imported(self.paper.variants[self.variant].make)
        torch.manual_seed(self.train.seed)
        model = make(config, corpus) if make else self.kind(config)
        # `load_weights` refuses those of another vocabulary
        model.encoder_digest = corpus.encoder.digest()
        if self.start:
            load_weights(model, self.start.folder, self.start.config["weights"])
        return model


def corpus_for(dataset: str, errors: str = "raise", test: str = "") -> Corpus:
    """Load a corpus's texts, with another's test documents where `test` names one."""
    corpus = load_corpus(dataset, errors)
    return corpus.tested_on(load_corpus(test, errors)) if test else corpus
