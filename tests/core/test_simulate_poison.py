"""The poison rule: no needed event can be lost, repeated or given another owner unnoticed.

An event is needed if it computes a visible pair or moves a message, be it of 0 tokens. Its owner
is needed if it computes a visible pair, receives keys, hands them on around a ring, or sends a
foreign gradient to which some query has added. So three kinds of event may name any owner: one that
only sends the rank's own keys, a sum of zeros, and the first hop of a full return, without which
the rank's own gradient is at home already.
"""

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpcore import Event, Layout, Run, Visibility, contiguous, from_lengths, schedule, zigzag
from cpcore import simulate as play
from cpcore.schedule import PROTOCOLS
from tests.support.cases import examples

LAYOUTS = {
    "one rank": from_lengths([4]),
    "two ranks": from_lengths([2, 3]),
    "equal": contiguous(8, 4),
    "zigzag": zigzag(7, 3),
    "empty rank": from_lengths([3, 0, 2]),
}
RULES = {
    "full": None,
    "causal": Visibility(),
    "window": Visibility(window=2),
    "documents": Visibility(causal=False, documents=np.array([0, 0, 1, 1, -1, 1, 1, 2])),
}
FIELDS = ("output", "lse", "dq", "dk", "dv")
Plan = tuple[str, str, str, int | None]


def run(plan: Plan, events: list[Event] | None = None) -> Run:
    protocol, layout, rule, max_block = plan
    size = LAYOUTS[layout].seq_len
    rng = np.random.default_rng(size)
    q, k, v, dout = (rng.standard_normal((2, size, 2)) for _ in range(4))
    return play(
        q, k, v, LAYOUTS[layout], RULES[rule], dout=dout,
        protocol=protocol, max_block=max_block, events=events,
    )  # fmt: skip


right = functools.cache(run)


def changes_or_raises(plan: Plan, events: list[Event]) -> bool:
    """Any change of these results is far above 1e-6, and reordered sums are far below it."""
    try:
        other = run(plan, events)
    except ValueError:
        return True
    for name in FIELDS:
        a, b = getattr(other, name), getattr(right(plan), name)
        seen = np.isfinite(a) & np.isfinite(b)
        if (seen != np.isfinite(b)).any() or np.abs(a[seen] - b[seen]).max(initial=0) > 1e-6:
            return True
    return False


def needed(event: Event) -> bool:
    return event.pairs > 0 or event.send_to is not None or event.recv_from is not None


def needs_its_owner(plan: Plan, event: Event) -> bool:
    ring, size = plan[0].startswith("ring"), LAYOUTS[plan[1]].cp_size
    if event.phase != "return":
        sends = ring and event.send_to is not None
        return event.pairs > 0 or event.recv_from is not None or sends
    if event.rank == event.owner:
        return False
    hops = event.step + (plan[0] == "ring_full_return") if ring else 1
    visited = {(event.rank - hop) % size for hop in range(hops)}  # ranks that the sum has met
    return any(
        e.phase == "replay" and e.pairs and e.rank in visited and e[3:6] == event[3:6]
        for e in right(plan).events
    )


@st.composite
def plans(draw: st.DrawFn, protocol: str, *, least_ranks: int = 1) -> Plan:
    layouts = [name for name, layout in LAYOUTS.items() if layout.cp_size >= least_ranks]
    return (
        protocol,
        draw(st.sampled_from(layouts)),
        draw(st.sampled_from(list(RULES))),
        draw(st.sampled_from([None, 1, 2])),
    )


def pick(data: st.DataObject, events: list[int]) -> int:
    return data.draw(st.sampled_from(events), label="index of the event")


def indices(plan: Plan) -> list[int]:
    return [i for i, event in enumerate(right(plan).events) if needed(event)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(data=st.data())
@examples(150)
def test_a_needed_event_that_is_left_out_shows(protocol: str, data: st.DataObject) -> None:
    plan = data.draw(plans(protocol))
    events = right(plan).events
    at = pick(data, indices(plan))
    assert changes_or_raises(plan, events[:at] + events[at + 1 :]), events[at]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(data=st.data())
@examples(150)
def test_a_needed_event_that_comes_twice_shows(protocol: str, data: st.DataObject) -> None:
    plan = data.draw(plans(protocol))
    events = right(plan).events
    at = pick(data, indices(plan))
    assert changes_or_raises(plan, events[: at + 1] + events[at:]), events[at]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(data=st.data())
@examples(150)
def test_a_needed_event_of_another_owner_shows(protocol: str, data: st.DataObject) -> None:
    plan = data.draw(plans(protocol, least_ranks=2))
    events = right(plan).events
    at = pick(data, [i for i, event in enumerate(events) if needs_its_owner(plan, event)])
    others = [o for o in range(LAYOUTS[plan[1]].cp_size) if o != events[at].owner]
    changed = events[at]._replace(owner=data.draw(st.sampled_from(others)))
    assert changes_or_raises(plan, [*events[:at], changed, *events[at + 1 :]]), changed


@pytest.mark.parametrize("side", ["send_to", "recv_from", "sent_tokens", "received_tokens"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(data=st.data())
@examples(40)
def test_a_message_of_another_size_or_peer_is_refused(
    protocol: str, side: str, data: st.DataObject
) -> None:
    plan = data.draw(plans(protocol, least_ranks=2))
    events, size = right(plan).events, LAYOUTS[plan[1]].cp_size
    peer = "send_to" if side.startswith("sen") else "recv_from"
    at = pick(data, [i for i, e in enumerate(events) if getattr(e, peer) is not None])
    value = getattr(events[at], side) + data.draw(st.integers(1, size - 1))
    changed: dict[str, Any] = {side: value % size if side == peer else value}
    with pytest.raises(ValueError, match="events: expected "):
        run(plan, [*events[:at], events[at]._replace(**changed), *events[at + 1 :]])


def message(events: list[Event], **options: Any) -> str:
    layout: Layout = from_lengths([2, 3])
    x = np.ones((5, 1))
    with pytest.raises(ValueError, match=r".") as caught:
        play(x, x, x, layout, None, events=events, **options)
    return str(caught.value)


def test_each_refusal_says_what_was_expected_and_shows_the_event() -> None:
    layout = from_lengths([2, 3])
    first, second, third, last = schedule(layout, None, backward=False)
    longer, unheard = first._replace(sent_tokens=3), last._replace(received_tokens=3)
    renamed = last._replace(owner=1)
    stranger, alias = first._replace(rank=2), first._replace(owner=-2)
    beyond, backwards = first._replace(key_stop=3), first._replace(key_start=2, key_stop=1)
    for events, wanted in {
        (third, first, second, last): f"a message sent before it is received, received {third}",
        (longer, second, third, last): f"2 tokens to send, received {longer}",
        (first, second, third, unheard): f"2 tokens to receive, received {unheard}",
        (first, second, third, renamed): f"the block that arrives, (0, 0, 2), received {renamed}",
        (stranger, second): f"ranks below 2, received {stranger}",
        (alias, second): f"ranks below 2, received {alias}",
        (beyond, second): f"keys within the owner's 2, received {beyond}",
        (backwards, second): f"keys within the owner's 2, received {backwards}",
        (first, second, third): "rank 1 to take all from 0, received (0, 0, 2)",
    }.items():
        assert message(list(events)) == f"events: expected {wanted}"


def test_an_unknown_protocol_is_refused_even_where_the_events_are_given() -> None:
    events = list(schedule(from_lengths([2, 3]), None, backward=False))
    assert message(events, protocol="rings").startswith("protocol: expected one of ring, ")


def test_a_foreign_block_that_no_event_delivered_is_nan_and_refused_where_it_is_used() -> None:
    """Without its message, rank 1 computes with the keys of rank 0 as if it had them."""
    first, second, third, last = schedule(from_lengths([2, 3]), None, backward=False)
    events = [
        first._replace(sent_tokens=0, send_to=None), second, third,
        last._replace(received_tokens=0, recv_from=None),
    ]  # fmt: skip
    refusal = "key_chunk: expected finite numbers in every used slot, received NaN or infinity"
    assert message(events) == refusal
    assert message(events, protocol="direct") == refusal
