"""What the commands share: tables, the report, exit codes and messages."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from cpcore.__main__ import COMMANDS, main
from cpcore.distributed import Message, PeerError, RankError, console, torchrun
from tests.distributed.test_lab import ENVIRONMENT, ROOT
from tests.support.leftovers import children


class Point(NamedTuple):
    x: float
    y: Any


def test_columns_line_up_and_small_numbers_keep_their_size() -> None:
    shown = console.table(["run", "differs", "right"], [["a", 3e-17, True], ["long", 0.25, False]])
    assert shown.splitlines() == [
        "run   differs  right",
        "----  -------  -----",
        "a     3.0e-17    yes",
        "long     0.25     NO",
    ]


def test_a_report_becomes_plain_json(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    console.write(path, {1: Point(float("-inf"), np.array([1.0, float("nan")])), "t": (True, None)})
    assert json.loads(path.read_text()) == {
        "1": {"x": "-inf", "y": [1.0, "nan"]},
        "t": [True, None],
    }


@pytest.mark.parametrize(
    ("outcome", "code", "told"),
    [
        ({"agrees": True}, 0, ""),
        ({"agrees": False}, 1, ""),
        (ValueError("x: expected 1, received 2"), 2, "python -m cpcore try: x: expected 1"),
        (RankError(1, "replay step 2", "gone", {}), 2, "rank 1, replay step 2: gone"),
        (
            PeerError(1, Message("replay", 2, 0, torch.zeros(1)), "from", "received nothing"),
            2,
            "rank 1, replay step 2: expected a message from rank 0, received nothing",
        ),
        (KeyboardInterrupt(), 130, "python -m cpcore try: interrupted"),
    ],
)
def test_the_exit_code_says_how_it_ended(
    outcome: Any, code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(options: Any) -> Any:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome, "a table"

    assert console.run([], console.parser("try", "Tries."), command) == code
    printed = capsys.readouterr()
    assert printed.out == ("a table\n" if code < 2 else "")
    assert told in printed.err


def test_under_torchrun_a_rank_tells_of_its_own_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rank 0 speaks for all, but of what befell another rank it knows nothing."""
    for name, value in zip(torchrun.VARIABLES, ("1", "2", "localhost", "1"), strict=True):
        monkeypatch.setenv(name, value)
    error = ValueError("x: expected 1, received 2")
    error.add_note("rank 1, training step 3")

    def command(options: Any) -> Any:
        raise error

    assert console.run([], console.parser("try", "Tries."), command) == 2
    wanted = "python -m cpcore try: rank 1, training step 3: x: expected 1, received 2\n"
    assert capsys.readouterr().err == wanted


def test_a_report_that_cannot_be_written_is_said_before_the_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = console.parser("try", "Tries.")
    assert console.run(["--json", "no/such/folder/x.json"], made, lambda options: 1 / 0) == 2
    assert "json: expected a file in a folder that exists" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["lab", "verify", "train"])
def test_help_names_every_option_its_default_and_torchrun(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"usage: python -m cpcore {command}" in shown
    assert "torchrun" in shown
    assert "--json FILE" in shown
    assert "(default: 120.0)" in shown
    assert command in COMMANDS


def test_an_interrupted_command_leaves_no_process() -> None:
    """Ctrl-C reaches the whole group, as in a terminal."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cpcore", "train", "--quiet", "--steps", "100000"],
        cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + 60
    while not (ranks := children(process.pid)) and time.monotonic() < end:
        time.sleep(0.05)
    assert ranks
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert told == "python -m cpcore train: interrupted\n"
    assert not any(Path(f"/proc/{rank}").exists() for rank in ranks)
