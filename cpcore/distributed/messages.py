"""A message between ranks: under way, recorded, or missed with an error that names rank and step.

Owns these few records and the wait. Who carries a message is `transport`, what it holds `plan`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor

from cpcore.distributed import where
from cpcore.schedule import Event


class Message(NamedTuple):
    """One buffer to or from a peer, as part of a step of a phase."""

    phase: str
    step: int
    peer: int
    buffer: Tensor

    @property
    def place(self) -> str:
        """Where a rank is that works on it."""
        return f"{self.phase} step {self.step}"


class Record(NamedTuple):
    """What a message turned out to be: counted from its buffer, not from any plan.

    collective: it was one of several that travel in one call, as in an all-gather.
    """

    phase: str
    step: int
    direction: str  # "sent" | "received"
    peer: int
    elements: int
    bytes: int
    collective: bool


class PeerError(RuntimeError):
    """A message that did not come or could not be sent, with the rank and the step that miss it."""

    def __init__(self, rank: int, message: Message, side: str, reason: str) -> None:
        self.rank, self.phase, self.step, self.peer = rank, *message[:3]
        self.told = f"expected a message {side} rank {message.peer}, {reason}"
        super().__init__(f"rank {rank}, {message.place}: {self.told}")


Wait = Callable[[], object]  # returns when its message is through, raises RuntimeError if it is not


def missed(rank: int, message: Message, side: str, error: RuntimeError) -> PeerError:
    """The error of a rank whose message could not begin or did not come."""
    # What follows in Gloo's text is advice that does not fit here.
    reason = " ".join(str(error).partition("This is typically")[0].split())
    return PeerError(rank, message, side, f"received {reason}")


class PendingWords:
    """One word from every rank, under way."""

    def __init__(self, words: Sequence[Tensor], pending: "Pending") -> None:
        self._words, self._pending = words, pending

    def wait(self) -> list[bytes]:
        """The words by rank."""
        self._pending.wait()
        return [bytes(word.cpu().numpy()) for word in self._words]


class Pending:
    """Messages under way. Their buffers belong to the transport until `wait` has returned."""

    def __init__(self, rank: int, waits: list[tuple[Message, str, Wait]]) -> None:
        self._rank, self._waits = rank, waits

    def wait(self) -> None:
        """Return when all have arrived and all buffers are free again.

        Raises: PeerError, naming the peer, for a message that fails or exceeds the time limit.
        """
        for message, side, wait in self._waits:
            where.step(message.place)
            try:
                wait()
            except PeerError:
                raise  # it knows which message could not begin
            except RuntimeError as error:
                raise missed(self._rank, message, side, error) from error
        self._waits = []


def of_event(event: Event, peer: int | None, buffer: Tensor) -> list[Message]:
    """The message of one side of an event, if it has one."""
    return [] if peer is None else [Message(event.phase, event.step, peer, buffer)]
