"""A rank comes to harm: every other rank ends in time, one error says who and where."""

import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from cpcore.distributed import RankError, launch
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
