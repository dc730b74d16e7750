"""Rules for when a window slides, which are additions to the paper's search."""

from typing import Literal
from zlib import crc32

import torch
from torch import Tensor

from lib.data.batch import Batch
from lib.decoding.config import DecodeConfig, SearchRule
from lib.models.state import per_hypothesis
from lib.system.settings import checked


@checked
class SlidingConfig(DecodeConfig):
    """A search, and when the window of a text slides."""

    # "as a word": when [SLIDE] is the best next symbol, as in the paper. The other rules decide
    # first (`SlideRule`).
    slide: Literal["as a word", "half", "median", "coin"] = "as a word"

    def rule(self, batch: Batch, control: Tensor) -> SearchRule | None:
        return None if self.slide == "as a word" else SlideRule(self, batch, control)

    def notes(self) -> list[str]:
        return [] if self.slide == "as a word" else [f"slides are decided first ({self.slide})"]


class SlideRule(SearchRule):
    """Decide whether to slide before a word is chosen. Words that are left keep their probability.

    A hypothesis slides
        "half": if [SLIDE] has more than half of the probability; "median": as soon as the product
        of 1 - P([SLIDE]) since its last slide is below 1/2, the median of the time
            until the next slide;
        "coin": by a coin of probability P([SLIDE]). A document's id determines its coins.

    D documents, K hypotheses of each, R = D * K rows, W words that may be written.
    """

    def __init__(self, config: SlidingConfig, batch: Batch, control: Tensor):
        self.slide = config.slide
        self.control = control
        coins = []
        for name in batch.ids:
            generator = torch.Generator().manual_seed(crc32(name.encode()))
            coins.append(torch.rand(config.max_length, generator=generator))
        self.coins = torch.stack(coins).to(batch.source.device)  # [D, max_length]
        # [R] probability of no slide since the last one
        self.stayed = torch.ones_like(self.coins[:, 0])
        self.step = 0

    def restrict(self, p: Tensor) -> None:
        stays = 1 - p[:, self.control].sum(1)  # [R]
        if self.slide == "median":
            stays = stays * self.stayed
        threshold: Tensor | float = 0.5
        if self.slide == "coin":
            threshold = per_hypothesis(self.coins, len(p))[:, self.step]
        slides = stays < threshold
        is_control = torch.zeros(p.shape[1], dtype=torch.bool, device=p.device)
        is_control.index_fill_(0, self.control, True)
        p.mul_(is_control == slides[:, None])
        self.stayed = stays.where(~slides, 1)
        self.step += 1

    def reorder(self, rows: Tensor, documents: Tensor | None = None) -> None:
        self.stayed = self.stayed[rows]
        if documents is not None:
            self.coins = self.coins[documents]
