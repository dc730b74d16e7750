"""The benchmark compares two ways to the same numbers: losses and gradients, in double precision."""

import pytest
import torch

from lib.models.hierarchical_transformer import HierarchicalTransformerConfig
from lib.models.mem2mem import Mem2MemConfig
from tests.conftest import VOCAB, batch_of
from tests.tools.bench.textbook import PointerGeneratorLSTM, TextbookHierarchicalTransformer, TextbookMem2Mem


@pytest.mark.parametrize("model", ["pointer_generator", "mem2mem", "hierarchical_transformer"])
def test_lib_and_textbook_are_equal(model):
    torch.manual_seed(0)
    if model == "mem2mem":
        config = Mem2MemConfig(VOCAB, 5, 6, 4, slots=3, compression=4, lambda_comp=0.3, lambda_read=0.7)
        network = TextbookMem2Mem(config).double()
    elif model == "hierarchical_transformer":
        sizes = {"width": 8, "heads": 2, "inner": 12, "local_layers": 2, "global_layers": 2, "dropout": 0.0}
        network = TextbookHierarchicalTransformer(HierarchicalTransformerConfig(VOCAB, **sizes)).double()
    else:
        network = PointerGeneratorLSTM(VOCAB, embedding=5, hidden=6).double()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    ours, theirs = network.loss(batch_of())["loss"], network.textbook_loss(batch_of())["loss"]
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-12)
    parameters = list(network.parameters())
    for a, b in zip(torch.autograd.grad(ours, parameters), torch.autograd.grad(theirs, parameters)):
        assert torch.allclose(a, b, rtol=0, atol=1e-10)
