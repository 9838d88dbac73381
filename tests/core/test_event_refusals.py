"""An event that no schedule could hold is refused, alike by what plays it and by what counts it."""

from typing import Any

import numpy as np
import pytest

from cpcore import Event, from_lengths, ledger, schedule, simulate
from tests.support.errors import refused

LAYOUT = from_lengths([2, 2])
X = np.ones((4, 1))
EVENTS = list(schedule(LAYOUT, None))


def play_and_count(events: list[Event], wanted: str, received: object) -> None:
    with refused("events", wanted, received):
        simulate(X, X, X, LAYOUT, None, dout=X, events=events)
    with refused("events", wanted, received):
        ledger(events, LAYOUT, q_heads=1, kv_heads=1, head_dim=1)


@pytest.mark.parametrize("value", ["1", None, 1.0, [1], np.array([0, 1])], ids=repr)
@pytest.mark.parametrize(
    "name",
    [
        "step", "rank", "owner", "key_start", "key_stop", "pairs", "sent_tokens",
        "received_tokens",
    ],
)  # fmt: skip
def test_a_field_that_is_no_integer_is_refused(name: str, value: Any) -> None:
    changed = EVENTS[0]._replace(**{name: value})
    play_and_count([changed, *EVENTS[1:]], f"an integer as {name}", changed)


@pytest.mark.parametrize(
    "change", [{"phase": "warmup"}, {"phase": None}, {"phase": ["forward"]}, {"verdict": "some"}]
)
def test_a_phase_or_verdict_that_does_not_exist_is_refused(change: dict[str, Any]) -> None:
    changed = EVENTS[0]._replace(**change)
    play_and_count([changed, *EVENTS[1:]], "a phase and a verdict that exist", changed)


@pytest.mark.parametrize(("at", "stream"), [(0, "grad_kv"), (-1, "kv"), (0, "z")])
def test_the_stream_of_another_phase_is_refused(at: int, stream: Any) -> None:
    events = EVENTS.copy()
    events[at] = events[at]._replace(stream=stream)
    play_and_count(events, "the stream of their phase", events[at])


@pytest.mark.parametrize("name", ["send_to", "recv_from"])
@pytest.mark.parametrize("peer", [2, -1, "1", 1.0, [1]], ids=repr)
def test_a_peer_that_the_layout_lacks_is_refused(name: str, peer: Any) -> None:
    changed = EVENTS[0]._replace(**{name: peer})
    play_and_count([changed, *EVENTS[1:]], "peers below 2, or None", changed)


@pytest.mark.parametrize(
    "change",
    [
        {"send_to": None},
        {"received_tokens": 3},
        {"sent_tokens": -1},
        {"sent_tokens": 0, "send_to": None, "received_tokens": -3},
    ],
)
def test_tokens_without_a_message_are_refused(change: dict[str, Any]) -> None:
    """The ledger would count them and the simulation would not move them."""
    changed = EVENTS[0]._replace(**change)
    wanted = "tokens of at least 0, and 0 without a peer"
    play_and_count([changed, *EVENTS[1:]], wanted, changed)


@pytest.mark.parametrize("side", ["sent_tokens", "received_tokens"])
@pytest.mark.parametrize("phase", ["forward", "replay", "return"])
def test_a_message_that_says_it_is_shorter_than_it_is_is_refused(phase: str, side: str) -> None:
    at = next(i for i, e in enumerate(EVENTS) if e.phase == phase and getattr(e, side))
    changed = EVENTS[at]._replace(**{side: 1})
    verb = "send" if side == "sent_tokens" else "receive"
    with refused("events", f"2 tokens to {verb}", changed):
        simulate(X, X, X, LAYOUT, None, dout=X, events=[*EVENTS[:at], changed, *EVENTS[at + 1 :]])


@pytest.mark.parametrize("phase", ["forward", "replay"])
def test_an_event_that_claims_more_keys_than_arrived_is_refused(phase: str) -> None:
    """Both ends count: a longer piece of the same owner starts at the same key."""
    events = list(schedule(LAYOUT, None, max_block=1))
    at = next(i for i, e in enumerate(events) if (e.phase, e.step, e.key_start) == (phase, 1, 0))
    events[at] = events[at]._replace(key_stop=2)
    arrived = (events[at].owner, 0, 1)
    with refused("events", f"the block that arrives, {arrived}", events[at]):
        simulate(X, X, X, LAYOUT, None, dout=X, max_block=1, events=events)
