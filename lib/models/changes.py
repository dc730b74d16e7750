"""Changes of a model for an experiment: a part of it, its first state, or what it reads.

A model offers its own by `Summarizer.changes`; `lib.evaluation.interventions` measures what they
do. A change holds for as long as its context does, and leaves the model as it was.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.documents import Document

# Makes a batch of the documents which follow those of another batch, and encodes them.
Following = Callable[[], tuple[Batch, Any]]


def _log_p(model: Any, batch: Batch, state: Any, _: Following) -> Tensor:
    output, _ = model.decode(batch.target_input, state)
    return model.log_prob(output, batch.target, state)


@dataclass(frozen=True)
class Change:
    """A change of texts, of encoded documents, of a model, of the first state, or of decoding."""

    what: str  # one line for people
    text: Callable[[Document], Document] | None = None  # before it is encoded
    document: Callable[[EncodedDocument], EncodedDocument] = lambda document: document
    model: Callable[[Any], AbstractContextManager] = nullcontext
    state: Callable[[Any, Following], Any] = lambda state, following: state
    # Log-probabilities of the references' words, [B, T].
    log_p: Callable[[Any, Batch, Any, Following], Tensor] = _log_p
    # Words that the vocabulary does not have do not count, with the change and without.
    only_known: bool = False
    # Makes the change of a model and of all documents, where one document and its neighbour are
    # not enough.
    of_all: Callable[[Any, Sequence[EncodedDocument]], "Change"] | None = None


NOTHING = Change("nothing is changed")


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Give an object another attribute, and then its own again."""
    is_own = name in vars(owner)  # not the class's
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if is_own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)


def configured(**changes: Any) -> Callable[[Any], AbstractContextManager]:
    """Return a change of a model: some values of its configuration."""
    return lambda model: replaced(model, "config", replace(model.config, **changes))


def hooks(change: Callable[..., Tensor], *names: str) -> Callable[[Any], AbstractContextManager]:
    """Return a change of a model: what some of its modules return.

    Args:
        change: (output, *other inputs) -> the output that replaces it.
        names: of the modules, or the ends of their names after a dot.
    """

    def hook(_: nn.Module, inputs: tuple, output: Tensor) -> Tensor:
        return change(output, *inputs[1:])

    @contextmanager
    def hooked(model: nn.Module) -> Iterator[None]:
        ends = tuple(f".{name}" for name in names)
        with ExitStack() as stack:
            for path, module in model.named_modules():
                if f".{path}".endswith(ends):
                    stack.enter_context(module.register_forward_hook(hook))
            yield

    return hooked


def batch_alone(model: Any, document: EncodedDocument) -> Batch:
    """Make a batch of one document, where the model computes."""
    batch = make_batch([document], model.config.vocab_size)
    return batch.to(next(model.parameters()).device)
