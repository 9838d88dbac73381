"""Messages between simulated ranks: each must be sent, expected and taken."""

from typing import Any

import pytest

from cpcore import from_lengths, schedule
from cpcore.exchange import Mailbox, Parcel

EVENTS = list(schedule(from_lengths([2, 3]), None))
SENT = next(e for e in EVENTS if e.rank == 0 and e.send_to == 1)
TAKEN = next(e for e in EVENTS if e.rank == 1 and e.recv_from == 0)
PARCEL = Parcel(0, 0, 2, ())


def posted(**changes: Any) -> Mailbox:
    """A mailbox that holds the message of rank 0."""
    mailbox = Mailbox()
    mailbox.post(SENT._replace(**changes), PARCEL)
    return mailbox


def test_a_message_is_taken_once() -> None:
    mailbox = posted()
    assert mailbox.take(TAKEN) is PARCEL
    mailbox.close()
    with pytest.raises(ValueError, match="a message sent before it is received"):
        mailbox.take(TAKEN)


def test_a_message_that_nobody_takes_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"rank 1 to take all from 0.*\(0, 0, 2\)"):
        posted().close()


def test_a_message_of_another_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="2 tokens to send"):
        posted(sent_tokens=3)
    with pytest.raises(ValueError, match="2 tokens to receive"):
        posted().take(TAKEN._replace(received_tokens=3))


def test_an_event_without_a_peer_sends_and_takes_nothing() -> None:
    mailbox = posted(send_to=None)
    assert mailbox.take(TAKEN._replace(recv_from=None)) is None
    mailbox.close()
