"""What the Mem2Mem page shows of its small models and of a run (`companion.pages.mem2mem`)."""

import re
from dataclasses import replace

import numpy as np
import torch

from companion.pages.mem2mem import memory_weights, planted_steps, planted_words
from companion.tasks.task import greedy_words
from lib.data.batch import make_batch
from lib.data.vocabulary import BOS, EOS, PAD, UNK
from lib.models.mem2mem import Mem2Mem
from tests.companion.test_tasks import planted, small_model


def test_greedy_words_are_the_most_probable_ones():
    model, document = small_model(Mem2Mem), planted(1)[0]
    (words,) = greedy_words(model, [document], 4, 4)
    batch = make_batch([replace(document, target=np.array(words))], 20)
    output, state = model.decode(batch.target_input, model.encode(batch))
    ranks = [
        model.log_prob(output, torch.full_like(batch.target, word), state) for word in range(20)
    ]
    allowed = torch.stack(ranks).index_fill(0, torch.tensor([PAD, UNK, BOS, EOS]), -torch.inf)
    assert allowed.argmax(0)[0].tolist() == words


def test_steps_of_a_model_that_writes():
    model, document = small_model(Mem2Mem), planted(1)[0]
    frames = planted_steps(model, document).frames
    (ids,) = greedy_words(model, [document], 6, 6)
    words = planted_words([*ids, EOS])
    assert len(frames) == len(document.target) == 7
    for t, html in enumerate(frames):
        written = re.search(r"written: (.*?)<b[^>]*>(.*?)</b>", html)
        assert written and [*written[1].split(), written[2]] == words[: t + 1]
        left = [float(share) for share in re.findall(r"([\d.]+) kept", html)]
        assert len(left) == 3 and (left == [1, 1, 1]) == (t == 0), (
            "nothing is written before the first word"
        )
        for name in ("P_g", "P_c", "P"):
            assert f">{name}</td>" in html


def test_the_papers_symbols_are_the_weights_of_the_model():
    model = small_model(Mem2Mem)
    weights = memory_weights(model)
    assert weights["gate"][0].tolist() == model.write_hidden.weight[:6].tolist()
    assert weights["update"][2].tolist() == model.write_memory.weight[6:].tolist()
    around = (
        "embedding",
        "sentence_",
        "document_",
        "bridge",
        "decoder",
        "word_",
        "pointer",
        "read_output",
    )
    rest = sum(p.numel() for name, p in model.named_parameters() if not name.startswith(around))
    assert sum(w.numel() for part in weights.values() for w in part) == rest, "each weight once"
