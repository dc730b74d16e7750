"""The paragraph ranker of Liu and Lapata (2019): equations 1 to 6."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch
from lib.layers.dropout import Dropout
from lib.layers.sequences import LSTM
from lib.system.fields import Share, checked

Pooling = Literal["max", "mean", "last"]


@checked
class ParagraphRankerConfig:
    """Sizes of the paper (section 4)."""

    vocab_size: int = 32_000
    embedding: int = 256  # not stated
    hidden: int = 256
    dropout: Share = 0.2  # before every linear layer
    pooling: Pooling = "max"  # of states; not the paper's: "mean", and "last", the state of the last word


class ParagraphRanker(nn.Module):
    """A score between 0 and 1 for each paragraph, given a title. It learns ROUGE-2 recall as a soft label."""

    Config = ParagraphRankerConfig

    def __init__(self, config: ParagraphRankerConfig):
        super().__init__()
        self.config = c = config
        self.embedding = nn.Embedding(c.vocab_size, c.embedding)
        self.title = LSTM(c.embedding, c.hidden)
        self.paragraph = LSTM(c.embedding, c.hidden)
        self.combine = nn.Linear(2 * c.hidden, c.hidden)  # W_1
        self.score = nn.Linear(c.hidden, 1)  # W_2
        self.dropout = Dropout(c.dropout)

    def match(self, title: Tensor, title_mask: Tensor, words: Tensor, mask: Tensor, owner: Tensor) -> Tensor:
        """Logits [A] of A paragraphs; their sigmoid is equation 6.

        Args:
            title: [B, M] ids, title_mask: [B, M]; words after a title's or a paragraph's end are padding.
            words: [A, J] ids, mask: [A, J].
            owner: [A], the title of each paragraph.
        """
        titles, _ = self.title(self.embedding(title))  # equation 1
        titles = self.pooled(titles, title_mask)  # equation 3: [B, H]
        states, _ = self.paragraph(self.embedding(words))  # equation 2: [A, J, H]
        both = torch.cat([states, titles[owner][:, None].expand_as(states)], -1)
        combined = torch.tanh(self.combine(self.dropout(both)))  # equation 4
        return self.score(self.dropout(self.pooled(combined, mask))).squeeze(-1)  # equations 5 and 6

    def pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        """One vector for the words of each row: [B, n, H] -> [B, H], whatever stands in the padding."""
        if self.config.pooling == "last":
            return states[torch.arange(len(states), device=states.device), mask.sum(1) - 1]
        if self.config.pooling == "mean":
            return states.masked_fill(~mask[..., None], 0).sum(1) / mask.sum(1, keepdim=True)
        return states.masked_fill(~mask[..., None], -torch.inf).amax(1)

    def logits(self, batch: Batch) -> Tensor:
        """Logits of all paragraphs of a batch [A], document by document. The first row of a document is its title."""
        rows, ids = batch.sentences, batch.source.flatten()
        titles = rows.number == 0
        words, mask = _trimmed(ids[rows.place], rows.mask, ~titles)
        return self.match(*_trimmed(ids[rows.place], rows.mask, titles), words, mask, rows.owner[~titles])

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Mean cross entropy of the scores of all paragraphs against their ROUGE-2 recall of the summary."""
        scores = self.logits(batch)
        assert batch.labels is not None, "documents of `ParagraphOptions` have labels"
        value = F.binary_cross_entropy_with_logits(scores, batch.labels.to(scores))
        return {"loss": value, "cross_entropy": value}

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        return self.loss(batch)


def _trimmed(words: Tensor, mask: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Some rows of words [A, J], as long as the longest of them."""
    mask = mask[rows]
    longest = int(mask.sum(1).max())
    return words[rows, :longest], mask[:, :longest]
