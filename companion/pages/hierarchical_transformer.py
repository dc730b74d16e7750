"""The long checks of the hierarchical transformer's page, and a panel of its rankings."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch

from companion.pages.checks import Checks, gradients
from companion.studies.ranking import COUNTS, recalls
from lib.data.batch import EncodedDocument, make_batch, rows_of
from lib.data.prepared import PreparedCorpus
from lib.data.vocabulary import BOS, EOS, PAD
from lib.layers.transformer import TransformerLayer
from lib.models.hierarchical_transformer import (
    HierarchicalTransformer,
    HierarchicalTransformerConfig,
)
from lib.papers.hierarchical_transformer.ranking import (
    learned_scores,
    paragraph_scores,
    train_ranker,
)

V = 20  # pieces of the models with random weights, seven of them symbols
EPSILON = 0.1  # of their smoothed labels


def local_layer(x: Sequence[torch.Tensor], layer: TransformerLayer) -> list[torch.Tensor]:
    """Apply the library's transformer layer to each paragraph [n_i, d] by itself."""
    single = [EncodedDocument.of("", [EOS] * len(words), [len(words)], [EOS]) for words in x]
    return [layer(words, make_batch([row], V).ragged) for words, row in zip(x, single)]


def check_equations(
    checks: Checks, eq10_input: Callable, eq20_contexts: Callable, eq23_global_layer: Callable
) -> None:
    """Compare a page's equations of the encoder, in double precision, with the library: attention
    between paragraphs and the states of words, with a graph and without, the smoothed loss, and its
    gradients."""
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(1)
    sizes: dict[str, Any] = {
        "width": 8,
        "heads": 2,
        "inner": 12,
        "local_layers": 1,
        "global_layers": 2,
    }
    model = HierarchicalTransformer(
        HierarchicalTransformerConfig(V, **sizes, dropout=0.0, smoothing=EPSILON)
    )
    for parameter in model.parameters():  # larger than usual: every mistake shows
        torch.nn.init.normal_(parameter, std=0.5)
    clusters = [_cluster(2, 5, 3), _cluster(2, 3), _cluster(2, 5, 2, 6, 1)]
    batch = make_batch(clusters, V)
    losses, graph = [], torch.rand(len(clusters), *2 * batch.sentence_mask.shape[1:])
    for (b, cluster), G in product(enumerate(clusters), (None, graph)):
        state, n, m = model.encode(batch, G), len(cluster.source), len(cluster.sentence_lengths)
        own, eq = (None, "(13)-(20)") if G is None else (G[b, :m, :m], "(24)")
        x = eq10_input([row.tolist() for row in rows_of(cluster)], model)
        for layer in model.local_layers:
            x = local_layer(x, layer)  # type: ignore[arg-type]
        for layer, between in zip(model.global_layers, state.between):
            checks.close(
                eq20_contexts(x, layer, own)[1],
                between[b, :, :m, :m],
                eq,
                "attention of paragraphs",
            )
            x = eq23_global_layer(x, layer, own)
        words = model.encoder_norm(torch.cat(x))
        checks.close(words, state.words[b, :n], "(7)-(23)", "states of the words")
        if G is None:
            losses.append(_smoothed_loss(model, words, cluster))
    loss, of_lib = torch.stack(losses).mean(), model.train().loss(batch)["loss"]
    checks.close(loss, of_lib, "the loss", "of the padded batch")
    checks.gradients(gradients(model, loss), gradients(model, of_lib), "its gradients")
    torch.set_default_dtype(torch.float32)


def _cluster(*lengths: int) -> EncodedDocument:
    """Make a title and paragraphs of so many random pieces, and a target of four."""
    source, target = (torch.randint(7, V, (n,)).tolist() for n in (sum(lengths), 4))
    return EncodedDocument.of("", source, list(lengths), [*target, EOS])


def _smoothed_loss(
    model: HierarchicalTransformer, words: torch.Tensor, cluster: EncodedDocument
) -> torch.Tensor:
    """Compute the loss of a cluster's target, where the library's decoder reads these states of
    words [n, d]."""
    target = cluster.target.tolist()
    sources = tuple(
        layer.source_attention.keys_and_values(words[None]) for layer in model.decoder_layers
    )
    state = model.encode(make_batch([cluster], V)).replace(words=words[None], source=sources)
    output, _ = model.decode(torch.tensor([[BOS, *target[:-1]]]), state)
    log_p = (output.features[0] @ model.embedding.weight.T + model.bias).log_softmax(-1)
    labels = torch.full_like(log_p, EPSILON / (V - 2))
    labels[:, PAD] = 0
    labels[torch.arange(len(target)), target] = 1 - EPSILON
    return -(labels * log_p).sum() / len(target)


def ranking_panel(wide: PreparedCorpus, options, ranked: bool, progress: bool) -> dict:
    """Make a panel of `lines`: how much of the summaries is in the best paragraphs (Table 1)."""
    test = wide["test"]
    scores = {"as they come": paragraph_scores(test, "order", wide.vocabulary)}
    if not ranked:
        scores["similarity"] = paragraph_scores(test, "similarity", wide.vocabulary)
        scores["learned"] = learned_scores(train_ranker(wide, options, progress), test)
    scores["by the labels"] = [document.labels for document in test]
    series: dict[str, list] = {}
    for name, every in scores.items():
        series[name] = [
            COUNTS,
            [recalls(test, every, count, wide.vocabulary).mean() for count in COUNTS],
        ]
    return {
        "series": series,
        "xlabel": "best paragraphs, L'",
        "ylabel": "ROUGE-L recall",
        "ticks": COUNTS,
    }
