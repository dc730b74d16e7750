"""The paragraph ranker of Liu and Lapata (2019): equations 1 to 6."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch
from lib.layers.dropout import Dropout
from lib.layers.recurrent import LSTM
from lib.models.summarizer import Model
from lib.system.settings import Share, checked


@checked
class ParagraphRankerConfig:
    """Sizes of the paper (section 4)."""

    vocab_size: int = 32_000
    embedding: int = 256  # not stated
    hidden: int = 256
    dropout: Share = 0.2  # before every linear layer


class ParagraphRanker(Model):
    """Score each paragraph, given a title, between 0 and 1. Soft labels are the ROUGE-2 recall of
    the summary."""

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

    def match(
        self, title: Tensor, title_mask: Tensor, words: Tensor, mask: Tensor, owner: Tensor
    ) -> Tensor:
        """Compute logits [A] of A paragraphs; their sigmoid is the score.

        Args:
            title: [B, M] ids, title_mask: [B, M], true for words.
            words: [A, J] ids, mask: [A, J].
            owner: [A], the title of each paragraph.
        """
        # u_t = LSTM_t(w_t),  u^_t = max over the words of u_t   (1, 3)
        titles, _ = self.title(self.embedding(title))
        titles = _max_over_words(titles, title_mask)  # [B, H]
        # u_p = LSTM_p(w_p)   (2)
        states, _ = self.paragraph(self.embedding(words))  # [A, J, H]
        # p_i = tanh(W_1 [u_pi; u^_t])   (4)
        both = torch.cat([states, titles[owner][:, None].expand_as(states)], -1)
        combined = torch.tanh(self.combine(self.dropout(both)))
        # p^ = max over the words of p_i,  s = sigmoid(W_2 p^)   (5, 6)
        return self.score(self.dropout(_max_over_words(combined, mask))).squeeze(-1)

    def logits(self, batch: Batch) -> Tensor:
        """Compute logits [A] of all paragraphs, document by document. A document's first row is its
        title."""
        rows, ids = batch.sentences, batch.source.flatten()
        titles = rows.number == 0
        words, mask = _trimmed(ids[rows.place], rows.mask, ~titles)
        title, title_mask = _trimmed(ids[rows.place], rows.mask, titles)
        return self.match(
            title=title,
            title_mask=title_mask,
            words=words,
            mask=mask,
            owner=rows.owner[~titles],
        )

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Compute the mean cross entropy of all paragraphs' scores with their ROUGE-2 recall of the
        summary."""
        scores = self.logits(batch)
        assert batch.labels is not None, "documents of `ParagraphOptions` have labels"
        value = F.binary_cross_entropy_with_logits(scores, batch.labels.to(scores))
        return {"loss": value, "cross_entropy": value}


def _max_over_words(states: Tensor, mask: Tensor) -> Tensor:
    """Pool the words of each row: [B, n, H] -> [B, H], whatever is in the padding."""
    return states.masked_fill(~mask[..., None], -torch.inf).amax(1)


def _trimmed(words: Tensor, mask: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Select some rows of words [A, J], as long as the longest of them."""
    mask = mask[rows]
    longest = int(mask.sum(1).max())
    return words[rows, :longest], mask[:, :longest]
