"""The launcher: results, the first error, time limits, and nothing left behind."""

import inspect
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from cpcore.distributed import (
    GroupTransport,
    Message,
    RankError,
    context_parallel_attention,
    launch,
    where,
)
from tests.support.leftovers import children, listening, nothing_left, ports_in_use

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = dict(os.environ, PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files go; after each test nothing may be left in it, nor any process."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with nothing_left(tmp_path):
        yield tmp_path


def summed(rank: int, factor: int) -> tuple[int, int, float]:
    total = torch.tensor([float(rank * factor)])
    dist.all_reduce(total)
    return rank, dist.get_world_size(), float(total)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_every_rank_works_in_one_group_and_results_come_in_order(size: int) -> None:
    total = 10 * sum(range(size))
    assert launch(summed, size, 10, time_limit_s=30) == [(r, size, total) for r in range(size)]


def test_a_fork_works_after_the_parent_has_used_many_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        x = torch.ones(600, 600)
        assert float((x @ x).sum()) == 600**3
        assert launch(multiplied, 2, time_limit_s=20) == [600.0**3] * 2
    finally:
        torch.set_num_threads(before)


def multiplied(rank: int) -> float:
    x = torch.ones(600, 600)
    return float((x @ x).sum())


def test_a_spawned_rank_gets_the_same_result() -> None:
    assert launch(summed, 2, 1, time_limit_s=60, start="spawn") == [(0, 2, 1.0), (1, 2, 1.0)]


def fail_on_one(rank: int, error: type[Exception]) -> None:
    where.at(f"forward step {rank + 1}")
    if rank == 1:
        raise error("this shard is odd")
    dist.barrier()


def test_the_first_error_is_raised_again_with_rank_step_and_traceback() -> None:
    with pytest.raises(RankError) as caught:
        launch(fail_on_one, 3, KeyError, time_limit_s=20)
    error = caught.value
    assert (error.rank, error.place) == (1, "forward step 2")
    assert str(error).startswith("rank 1, forward step 2: KeyError: 'this shard is odd'")
    assert "in fail_on_one" in str(error)
    assert isinstance(error.__cause__, KeyError)
    assert sorted(error.others) == [0, 2]
    assert error.others[2].startswith("forward step 3: ")


def test_an_error_that_cannot_travel_still_arrives_as_text() -> None:
    class Local(Exception):  # noqa: N818
        pass

    with pytest.raises(RankError, match="Local: this shard is odd") as caught:
        launch(fail_on_one, 2, Local, time_limit_s=20)
    assert caught.value.__cause__ is None


def kill_one(rank: int, number: int) -> None:
    where.at("replay step 3")
    if rank == 0:
        os.kill(os.getpid(), number)
    dist.barrier()


def test_a_killed_rank_is_named_with_the_step_it_had_reached() -> None:
    with pytest.raises(RankError, match="rank 0, replay step 3: ended: ended by SIGKILL") as caught:
        launch(kill_one, 2, signal.SIGKILL, time_limit_s=20)
    assert 1 in caught.value.others


def test_a_rank_that_ends_without_a_result_is_named() -> None:
    def worker(rank: int) -> int:
        if rank == 1:
            os._exit(0)
        return rank

    with pytest.raises(RankError, match="exit 0, no result") as caught:
        launch(worker, 2, time_limit_s=20)
    assert caught.value.rank == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_nccl_without_a_gpu_is_refused() -> None:
    wanted = "backend: expected gloo where there is no GPU, received 'nccl'"
    with pytest.raises(RankError, match=wanted):
        launch(summed, 1, 1, time_limit_s=20, backend="nccl")


def stop_one(rank: int) -> None:
    where.at("return step 1")
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    dist.barrier()


def test_a_stopped_rank_costs_no_more_than_the_time_limit() -> None:
    begin = time.monotonic()
    with pytest.raises(RankError) as caught:
        launch(stop_one, 3, time_limit_s=5)
    assert time.monotonic() - begin < 9
    assert caught.value.rank in (0, 2)  # they waited half of the limit for rank 1
    assert caught.value.others[1] == "return step 1: still running"


def sleep_forever(rank: int) -> None:
    where.at("forward step 0")
    Path(tempfile.gettempdir(), f"ready-{rank}").touch()
    time.sleep(600)


def test_ranks_that_never_end_are_ended_at_the_time_limit(folder: Path) -> None:
    with pytest.raises(RankError, match="rank 0, forward step 0: TimeoutError: not done within"):
        launch(sleep_forever, 2, time_limit_s=3)
    remove_ready(folder, 2)


def remove_ready(folder: Path, count: int) -> None:
    for rank in range(count):
        (folder / f"ready-{rank}").unlink()


def wait_until(holds: Any, limit_s: float = 20) -> None:
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_an_interrupt_ends_every_rank(folder: Path) -> None:
    def interrupt() -> None:
        wait_until(lambda: len(list(folder.glob("ready-*"))) == 2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        launch(sleep_forever, 2, time_limit_s=60)
    thread.join()
    remove_ready(folder, 2)


PARENT = """
import tempfile
from cpcore.distributed import launch
from tests.distributed.test_launch import sleep_forever
launch(sleep_forever, 2, time_limit_s=60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ranks_and_their_files_do_not_outlive_a_killed_parent(
    folder: Path, number: signal.Signals
) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, env=ENVIRONMENT | {"TMPDIR": str(folder)}
    )
    try:
        wait_until(lambda: len(list(folder.glob("ready-*"))) == 2, 60)
        ranks = children(parent.pid)
        ports = {port for rank in ranks for port in listening(rank)}
        assert len(ranks) == 2
        assert len(ports) == 2
    finally:
        parent.send_signal(number)
        parent.wait()
    wait_until(lambda: not any(Path(f"/proc/{rank}").exists() for rank in ranks))
    wait_until(lambda: not list(folder.glob("cpcore-*")))
    assert not ports & ports_in_use()
    remove_ready(folder, 2)


def test_wrong_arguments_are_named_before_anything_starts() -> None:
    for wrong, name in (
        ({"cp_size": 0}, "cp_size: expected an integer of at least 1, received 0"),
        ({"worker": "summed"}, "worker: expected a function of"),
        ({"time_limit_s": 0}, "time_limit_s: expected a finite number above 0, received 0"),
        ({"start": "forkserver"}, "start: expected one of fork, spawn or None"),
    ):
        arguments: dict[str, Any] = {"worker": summed, "cp_size": 2, **wrong}
        with pytest.raises(ValueError, match=name):
            launch(**arguments)


def test_a_worker_that_cannot_be_imported_is_refused_when_ranks_are_spawned() -> None:
    with pytest.raises(ValueError, match="worker: expected a worker and arguments that another"):
        launch(lambda rank: rank, 2, time_limit_s=60, start="spawn")


UNDER_TORCHRUN = """
from cpcore.distributed import launch
from tests.distributed.test_launch import summed
for factor in (1, 10):
    results = launch(summed, 2, factor, time_limit_s=60)
    assert results == [(r, 2, 1.0 * factor) for r in range(2)], results
try:
    launch(summed, 3, 1)
except ValueError as error:
    assert "cp_size: expected 2, the processes that were started, received 3" in str(error)
else:
    raise SystemExit("accepted")
"""


def test_under_torchrun_its_processes_are_the_ranks(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNDER_TORCHRUN)
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    script.unlink()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("function", [launch, context_parallel_attention])
def test_the_page_shows_the_real_signature(function: Any) -> None:
    """The book is built without torch, so its signatures are written by hand."""
    page = (ROOT / "book" / "processes.md").read_text(encoding="utf-8")
    (shown,) = re.findall(rf"py:function:: {function.__name__}\((.*)\)", page)
    parameters = inspect.signature(function).parameters.values()
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    real = str(inspect.Signature(plain))[1:-1]
    assert shown.replace('"', "'") == real


def test_a_missed_message_names_its_step_once_also_in_the_middle_of_other_work() -> None:
    def worker(rank: int) -> None:
        where.at("training step 3")
        buffer = torch.zeros(1)
        if rank == 0:
            transport = GroupTransport(time_limit_s=0.3)
            transport.post([], [Message("forward", 2, 1, buffer)]).wait()
        time.sleep(5)

    with pytest.raises(RankError) as caught:
        launch(worker, 2, time_limit_s=20)
    text = str(caught.value).splitlines()[0]
    wanted = "rank 0, training step 3, forward step 2: PeerError: expected a message from rank 1,"
    assert text.startswith(wanted), text
    assert text.count("step 2") == 1
