"""Arguments of `simulate` and `schedule` that are refused, and how."""

from typing import Any

import numpy as np
import pytest

from cpcore import Visibility, contiguous, schedule, simulate
from tests.support.errors import refused

X = np.ones((2, 4, 3))
LONG = np.ones((2, 5, 3))
LAYOUT = contiguous(4, 2)


def call(**changes: Any) -> None:
    arguments: dict[str, Any] = {"query": X, "key": X, "value": X, "dout": X}
    arguments |= {"layout": LAYOUT, "visibility": Visibility()}
    simulate(**(arguments | changes))


def test_nothing_is_refused_before_a_change() -> None:
    call()
    call(scale=-2, max_block=1, fault=("lost_return", 0, 1))


@pytest.mark.parametrize(
    ("changes", "argument", "wanted", "received"),
    [
        ({"query": X[:, :3], "dout": X[:, :3]}, "query", "4 positions like the layout", (2, 3, 3)),
        ({"key": X[:, :3], "value": X[:, :3]}, "key", "4 positions like the layout", (2, 3, 3)),
        (
            {"query": LONG, "dout": LONG},
            "query",
            "4 positions like the layout",
            (2, 5, 3),
        ),
        ({"key": LONG, "value": LONG}, "key", "4 positions like the layout", (2, 5, 3)),
        ({"value": X[:, :3]}, "value", "shape (2, 4, 'Dv')", "shape (2, 3, 3)"),
        ({"dout": X[..., :2]}, "dout", "shape (2, 4, 3)", (2, 4, 2)),
        ({"dout": X.astype(int)}, "dout", "float16, float32 or float64", "int64"),
        ({"scale": np.nan}, "scale", "a finite number", "nan"),
        ({"max_block": 0}, "max_block", "an integer of at least 1", 0),
        (
            {"protocol": "all_to_all"},
            "protocol",
            "one of ring, ring_full_return, direct, all_gather",
            "'all_to_all'",
        ),
        ({"fault": ("lost_return", 0, 2)}, "fault owner", "a rank below 2", 2),
        ({"fault": ("lost_return", -1, 0)}, "fault rank", "an integer of at least 0", -1),
        ({"events": 5}, "events", "an iterable of Event", "int"),
        ({"events": ["forward"]}, "events", "an iterable of Event", "one of str"),
    ],
    ids=range(14),
)
def test_a_wrong_argument_is_named_with_what_was_expected_and_received(
    changes: dict[str, Any], argument: str, wanted: str, received: object
) -> None:
    with refused(argument, wanted, received):
        call(**changes)


@pytest.mark.parametrize("fault", ["no_such", ("lost_return", 0), ("lost", 0, 1), 3, ("own_lse",)])
def test_an_unknown_fault_is_refused_with_the_names_that_exist(fault: Any) -> None:
    with pytest.raises(ValueError, match=r"^fault: expected \('lost_return', rank, owner\) or one"):
        call(fault=fault)


@pytest.mark.parametrize("rule", [
    {"documents": np.zeros(3, int)}, {"relation": np.ones((3, 3), bool)},
])  # fmt: skip
def test_a_rule_shorter_than_the_sequence_is_refused_by_simulate_and_by_schedule(
    rule: dict[str, Any],
) -> None:
    for work in (lambda: call(visibility=Visibility(**rule)),
                 lambda: schedule(LAYOUT, Visibility(**rule))):  # fmt: skip
        with refused("layout", f"positions below 3 ({next(iter(rule))})", 3):
            work()


@pytest.mark.parametrize("missing", ["forward", "replay"])
def test_events_without_a_phase_that_the_run_needs_are_refused(missing: str) -> None:
    """Without the replay, every gradient would come back as a silent 0."""
    events = [e for e in schedule(LAYOUT, Visibility()) if e.phase != missing]
    with refused("events", f"events of phase {missing!r}", "none"):
        call(events=events)


def test_events_of_a_backward_pass_do_no_harm_without_dout() -> None:
    call(dout=None, events=schedule(LAYOUT, Visibility()))


@pytest.mark.parametrize("backward", ["no", 0, None, 1.0])
def test_a_schedule_is_asked_for_its_backward_pass_with_a_bool(backward: Any) -> None:
    with refused("backward", "True or False", repr(backward)):
        schedule(LAYOUT, None, backward=backward)
    assert len(list(schedule(LAYOUT, None, backward=bool(np.False_)))) == 4
