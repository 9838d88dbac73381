"""A part of a schedule is counted as what it is."""

import pytest

from cpcore import Visibility, from_lengths, ledger, schedule
from cpcore.schedule import PROTOCOLS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_replay_alone_holds_what_the_forward_pass_alone_holds(protocol: str) -> None:
    """The same blocks arrive and the same tiles are scored; only the gradients are one more."""
    layout = from_lengths([3, 1, 0, 2])
    events = list(schedule(layout, Visibility(), protocol=protocol, max_block=2))
    held = {
        phase: ledger(
            [e for e in events if e.phase == phase], layout, q_heads=1, kv_heads=1, head_dim=2
        )[-4:]
        for phase in ("forward", "replay")
    }
    for forward, replay in zip(held["forward"], held["replay"], strict=True):
        assert replay._replace(gradients=0, resident_bytes=0) == forward._replace(resident_bytes=0)
    assert [row.gradients for row in held["replay"]] == [18, 6, 0, 12]
    assert all(row.remote_block for row in held["replay"])
