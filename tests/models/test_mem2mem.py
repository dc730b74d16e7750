import pytest
import torch

from lib.data.vocabulary import BOS, UNK
from lib.models.hred import HRED
from lib.models.mem2mem import Mem2Mem, compression_loss
from lib.papers import PAPERS
from tests.conftest import RAGGED, batch_of, document, same_gradients, tiny_model

# the rows of Table 2
VARIANTS = {
    name: v.config for name, v in PAPERS["mem2mem"].variants.items() if v.kind in (HRED, Mem2Mem)
}


def test_the_memory_is_not_written_before_the_first_read():
    model, batch = tiny_model(), batch_of()
    state = model.encode(batch)
    _, after = model.decode(batch.target_input[:, :1], state)
    assert torch.equal(after.memory, state.encoder_memory)
    _, later = model.decode(batch.target_input[:, 1:2], after)
    assert not torch.allclose(later.memory, after.memory)
    assert torch.equal(later.encoder_memory, state.encoder_memory)


def test_without_writing_the_memory_stays():
    model, batch = tiny_model(**VARIANTS["+encoder memory"]), batch_of()
    _, after = model.decode(batch.target_input, model.encode(batch))
    assert torch.equal(after.memory, after.encoder_memory)


def test_a_write_gate_with_a_bias_starts_by_keeping_and_learns():
    model, batch = tiny_model(gate_bias=3.0), batch_of()
    assert Mem2Mem(model.config).write_hidden.bias.tolist() == [3.0] * 6 + [0.0] * 6, (
        "of the gate, not the update"
    )
    memory, read, hidden = model.encode(batch).memory, *torch.randn(2, 3, 6, dtype=torch.float64)
    with_bias = model.gate_and_update(memory, read, model.write_hidden(hidden))
    bias = model.write_hidden.bias.detach().clone()
    model.loss(batch)["loss"].backward()
    assert model.write_hidden.bias.grad.abs().min() > 0
    with torch.no_grad():
        model.write_hidden.bias.zero_()
    plain = model.gate_and_update(memory, read, model.write_hidden(hidden))
    assert torch.allclose(
        with_bias[0], torch.sigmoid(torch.logit(plain[0]) + bias[:6]), rtol=0, atol=1e-12
    )
    assert tiny_model().write_hidden.bias is None, "the paper has none"


def test_a_memory_from_zeros_is_one_vector():
    model, batch = tiny_model(**VARIANTS["+decoder memory"]), batch_of()
    output, after = model.decode(batch.target_input, model.encode(batch))
    assert torch.allclose(output.read, torch.full_like(output.read, 1 / 3), rtol=0, atol=1e-12)
    memory = after.memory
    assert memory.abs().max() > 0.1
    assert torch.allclose(memory, memory[:, :1].expand_as(memory), rtol=0, atol=1e-12)


def test_loss_terms_have_their_weights():
    weighted = tiny_model(lambda_comp=0.5, lambda_read=0.25).loss(batch_of())
    expected = weighted["nll"] + 0.5 * weighted["comp"] + 0.25 * weighted["read"]
    assert torch.allclose(weighted["loss"], expected)
    assert list(tiny_model(**VARIANTS["+decoder memory"]).loss(batch_of())) == ["loss", "nll"]


def test_compression_loss_by_hand():
    cases = {0.0: [[1, 0], [0, 1]], 1.0: [[0.5, 0.5], [0.5, 0.5]], 2.0: [[1, 0], [1, 0]]}
    for expected, rows in cases.items():
        assert compression_loss(torch.tensor([rows]).float()).item() == pytest.approx(expected)


def test_read_loss_has_a_gradient_at_zero():
    """One slot on one sentence: both contexts are the same vector."""
    model = tiny_model(slots=1, write=False)
    losses = model.loss(batch_of(document([[4, 5]], [4, 3])))
    assert losses["read"].item() == pytest.approx(0, abs=1e-9)
    losses["loss"].backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


# ---------------------------------------------------------------------------------
# the whole objective, word by word


def attend(query, keys, layer):
    """Luong's concat score, softmax over the keys: [n]."""
    W_q, W_k, v = layer.query.weight, layer.key.weight, layer.v.weight[0]
    return torch.stack([v @ torch.tanh(W_q @ query + W_k @ key) for key in keys]).softmax(0)


def read_both_ways(inputs, gru):
    """[n, e] -> states [n, d], [last forwards; last backwards] [d]."""
    states, last = gru(inputs)
    return states, torch.cat([last[0], last[1]])


def naive_objective(of, model):
    """Equations 1 to 17 of the paper, for one document, without padding."""
    size, d = model.config.vocab_size, model.config.hidden
    ids = torch.from_numpy(of.source).long()
    sentences = ids.where(ids < size, UNK).split(of.sentence_lengths.tolist())
    # (1)
    read = [read_both_ways(model.embedding(words), model.sentence_encoder) for words in sentences]
    h_w, s = torch.cat([states for states, _ in read]), torch.stack([last for _, last in read])
    H, final = read_both_ways(s, model.document_encoder)  # (2), (4)
    A = (model.compress_heads.weight @ torch.tanh(model.compress_hidden.weight @ H.T)).softmax(1)
    M = M_E = A @ H  # (5)
    target = torch.from_numpy(of.target).long()
    fed = torch.cat([torch.tensor([BOS]), target[:-1]])
    x = model.embedding(fed.where(fed < size, UNK))
    h_d, _ = model.decoder(x, model.bridge(final)[None])
    sentence_of = [j for j, length in enumerate(of.sentence_lengths) for _ in range(length)]
    W_z, W_u = zip(
        *(m.weight.split(d) for m in (model.write_hidden, model.write_read, model.write_memory))
    )
    words, pointer, w = model.word_attention, model.pointer, model.pointer.switch
    cov, m, nll, gaps = torch.zeros(len(h_w)).double(), None, 0.0, []
    for t, h in enumerate(h_d):
        if t:  # (8), (9), (10)
            z = [torch.sigmoid(W_z[0] @ h + W_z[1] @ m + W_z[2] @ slot) for slot in M]
            u = [torch.tanh(W_u[0] @ h + W_u[1] @ m + W_u[2] @ slot) for slot in M]
            M = torch.stack([z[k] * M[k] + (1 - z[k]) * u[k] for k in range(len(M))])
        psi = attend(h, M, model.read_attention)
        m = sum(psi[k] * M[k] for k in range(len(M)))
        h_m = model.read_output.weight @ torch.cat([h, m])  # (7)
        sums = [
            words.key.weight @ h_w[i] + words.query.weight @ h_m + words.coverage * cov[i]
            for i in range(len(h_w))
        ]
        alpha = torch.stack([words.v @ torch.tanh(total) for total in sums]).softmax(0)  # (17)
        cov = cov + alpha  # (16)
        beta = attend(h_m, H, model.sentence_attention)
        gamma = torch.stack([beta[sentence_of[i]] * alpha[i] for i in range(len(alpha))])
        gamma = gamma / gamma.sum()
        c = gamma @ h_w  # (3)
        # (13), with a sigmoid
        p = torch.sigmoid(w.weight[0] @ torch.cat([c, h_m, x[t]]) + w.bias[0])
        P_g = pointer.vocabulary(pointer.bottleneck(torch.cat([h_m, c]))).softmax(0)
        word = target[t]
        copied = sum(gamma[i] for i in range(len(gamma)) if of.source[i] == word)  # (14)
        # (15)
        nll = nll - torch.log((p * P_g[word] if word < size else 0) + (1 - p) * copied) / len(
            target
        )
        gaps.append(torch.linalg.vector_norm(psi @ M_E - beta @ H))
    # (6)
    comp = sum((A[k] @ A[n] - float(k == n)) ** 2 for k in range(len(A)) for n in range(len(A)))
    # (11), (12)
    return nll + model.config.lambda_comp * comp + model.config.lambda_read * sum(gaps) / len(gaps)


def test_the_objective_is_the_papers_word_by_word():
    """Three documents of different sizes, padded, with copied unknown words; and all gradients."""
    model = tiny_model(lambda_comp=0.3, lambda_read=0.7)
    naive, loss = (
        sum(naive_objective(of, model) for of in RAGGED) / len(RAGGED),
        model.loss(batch_of())["loss"],
    )
    assert torch.isclose(naive, loss, rtol=0, atol=1e-11)
    same_gradients(model, naive, loss)
