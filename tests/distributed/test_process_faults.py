"""A rank comes to harm: every other rank ends in time, one error says who and where."""

import os
import re
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from cpcore import contiguous
from cpcore.distributed import (
    MATH,
    GroupTransport,
    RankError,
    context_parallel_attention,
    launch,
)
from cpcore.distributed.block_ops import Math
from cpcore.distributed.state import Stats
from tests.support.harm import IN_FLIGHT, OUT_OF_LINE, Harm, attend, drawn
from tests.support.leftovers import nothing_left
from tests.support.plugin import SAID

ROUNDS, LIMIT_S, WAIT_S = 50, 8.0, 1.5
LATE = f"not done within time_limit_s = {LIMIT_S:g}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def run(harm: Harm) -> RankError | None:
    """The error of one round."""
    try:
        results = launch(attend, harm.layout.cp_size, harm, time_limit_s=LIMIT_S)
    except RankError as error:
        return error
    assert len(results) == harm.layout.cp_size
    return None


def check(harm: Harm, error: RankError | None) -> None:
    """The round ended as it must."""
    if not harm.kind:
        assert error is None
        return
    assert error is not None
    assert re.match(rf"rank {error.rank}, [^:]*(step \d|agreement)", str(error)), str(error)
    told = {error.rank: str(error).splitlines()[0], **error.others}
    if harm.kind == "killed":
        assert (error.rank, error.place) == (harm.victim, harm.place), str(error)
        assert "ended by SIGKILL" in str(error)
    elif harm.kind == "raises":
        assert (error.rank, error.place) == (harm.victim, harm.place), str(error)
        assert isinstance(error.__cause__, ArithmeticError)
    elif harm.kind in ("stopped", "asleep"):
        if error.rank == harm.victim:  # no one needed it any more, so only the launcher missed it
            assert str(error) == f"rank {harm.victim}, {harm.place}: TimeoutError: {LATE}"
        else:
            assert told[harm.victim] == f"{harm.place}: still running"
    elif harm.kind in OUT_OF_LINE:
        assert isinstance(error.__cause__, ValueError), str(error)
        assert harm.kind in str(error).replace("shapes", "width")
        assert len(told) == harm.layout.cp_size
    hung = harm.victim if harm.kind in ("stopped", "asleep") else None
    for rank, text in told.items():
        assert rank == hung or "still running" not in text, str(error)
        assert re.search(r"step \d|agreement", text), text


class Dying(Math):
    """Ends its process when it is called for the second time in a pass."""

    def __init__(self, backward: bool) -> None:
        self.backward, self.calls = backward, 0

    def attend(self, *arrays: Any) -> Stats:
        if not self.backward:
            self.count()
        return super().attend(*arrays)

    def gradients(self, *arrays: Any) -> tuple[torch.Tensor, ...]:
        if self.backward:
            self.count()
        return super().gradients(*arrays)

    def count(self) -> None:
        self.calls += 1
        if self.calls == 2:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("protocol", ["ring", "ring_full_return", "direct", "all_gather"])
def test_a_rank_that_dies_while_it_computes_is_at_the_step_it_computes(
    protocol: str, backward: bool
) -> None:
    def worker(rank: int) -> None:
        q = torch.randn(1, 1, 2, 4, requires_grad=True)
        out = context_parallel_attention(
            q, q, q, layout=contiguous(6, 3), visibility=None, protocol=protocol,
            group=GroupTransport(time_limit_s=5), block_op=Dying(backward) if rank == 1 else MATH,
        )  # fmt: skip
        out.sum().backward()  # type: ignore[no-untyped-call]

    with pytest.raises(RankError) as caught:
        launch(worker, 3, time_limit_s=20)
    place = "replay step 1" if backward else "forward step 1"
    assert (caught.value.rank, caught.value.place) == (1, place)


def test_fifty_rounds_of_random_harm_end_in_time_and_leave_nothing(
    folder: Path, record_property: Callable[[str, object], None]
) -> None:
    seen: Counter[str] = Counter()
    begin = time.monotonic()
    for seed in range(ROUNDS):
        harm = drawn(seed, WAIT_S)
        seen[harm.kind] += 1
        start = time.monotonic()
        with nothing_left(folder):
            error = run(harm)
        assert time.monotonic() - start < LIMIT_S + 2
        try:
            check(harm, error)
        except AssertionError as wrong:
            raise AssertionError(f"seed {seed}, {harm}: {wrong}") from error
    took = time.monotonic() - begin
    told = ", ".join(f"{count} {kind or 'unharmed'}" for kind, count in sorted(seen.items()))
    record_property(SAID, f"{ROUNDS} rounds of harm to a rank in {took:.0f} s: {told}")
    assert seen.keys() == {*IN_FLIGHT, *OUT_OF_LINE, ""}
