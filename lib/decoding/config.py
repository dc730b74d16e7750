"""How summaries are searched for: what a run's folder keeps of it."""

from typing import Annotated, Any

from pydantic import Field
from torch import Tensor

from lib.data.batch import Batch
from lib.data.vocabulary import BOS, PAD, UNK
from lib.system.errors import InputError
from lib.system.settings import Natural, Positive, checked

DECODINGS = {"plain beam search": 0, "trigram blocking": 3}  # `DecodeConfig.block_ngrams`


@checked
class DecodeConfig:
    """Beam search, or sampling. Lengths count words without [EOS], and symbols that steer the
    model."""

    beam: Annotated[int, Field(ge=1, le=1_000)] = 4  # the paper's (appendix A.2)
    min_length: int = 0
    max_length: Annotated[int, Field(ge=1, le=100_000)] = 200
    # p: hypotheses are ranked by log P / ((length + offset) / (1 + offset))^p
    length_penalty: Annotated[float, Field(ge=-9, le=9)] = 1.0
    length_offset: Natural = 0  # 0 with p = 1: mean log P a symbol; 5: the rule of Wu et al. 2016
    # a summary that max_length cuts is taken only where no hypothesis has ended before
    ended_first: bool = False
    block_ngrams: Natural = 0  # no n-gram of this size twice; 0: anything goes
    # words that are never written; ids that no word has do nothing
    forbidden: tuple[Natural, ...] = (PAD, UNK, BOS)
    # draw each word from so many of the most probable ones, without a beam; 0: no draws
    sample: Natural = 0
    temperature: Positive = 1.0  # of what is drawn: P^(1 / temperature)

    def __post_init__(self):
        least, most = self.min_length, self.max_length
        if least > most:
            raise InputError(f"min_length {least} must be at most max_length, {most}")

    def rank(self, log_prob: Any, length: int) -> Any:
        """Compute the score by which hypotheses of `length` symbols ([EOS] counted in) are
        compared."""
        # log P / ((length + offset) / (1 + offset))^p
        scaled = (length + self.length_offset) / (1 + self.length_offset)
        return log_prob / scaled**self.length_penalty

    def rule(self, batch: Batch, control: Tensor) -> "SearchRule | None":
        """Make what decides in a search before words are chosen. A paper's own configuration may
        override this.

        control: [C] ids of the model's `control_symbols`.
        """
        return None

    def notes(self) -> list[str]:
        """Describe options that a table of scores must name beside the variant."""
        return []


class SearchRule:
    """Decisions of one search that come before the choice of a word, with a state for each
    hypothesis."""

    def restrict(self, p: Tensor) -> None:
        """Set probabilities [R, W] to 0, in place, where the rule decides against a word; once for
        each step."""
        raise NotImplementedError

    def reorder(self, rows: Tensor, documents: Tensor | None = None) -> None:
        """Choose hypotheses and documents, as `DecoderState.reorder` does."""
        raise NotImplementedError
