"""The laboratory on real processes: what it reports, and that it sees what is wrong."""

import json
import math
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cpcore.distributed import lab
from cpcore.distributed.lab_cells import INPUTS, PATHS, RULES, Cell, cells, reference
from cpcore.distributed.player import Player
from cpcore.ui import lab_facts
from tests.support.laboratories import solved

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = dict(os.environ, PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1")
LIMIT = ["--time-limit", "60"]


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """Every cell, on 2, 3 and 4 processes."""
    return lab.laboratory(time_limit_s=100)


def test_every_cell_does_exactly_what_its_path_must_do(report: dict[str, Any]) -> None:
    assert report["agrees"]
    for verdict in report["cells"]:
        assert set(verdict.wrong) == PATHS[verdict.cell.path], verdict.cell
        assert len(verdict.ranks) == verdict.cell.layout.cp_size
        assert max(verdict.to_simulation.values()) < 1e-13
        assert verdict.events_equal
        assert verdict.bytes_equal
    assert len(report["cells"]) == len(cells()) == 288


def test_a_lost_gradient_leaves_the_loss_equal_and_the_gradients_far_off(
    report: dict[str, Any],
) -> None:
    lost = [v for v in report["cells"] if v.cell.path == "lost gradient"]
    assert lost
    for verdict in lost:
        gaps = verdict.to_reference
        assert max(gaps["output"], gaps["loss"], gaps["dq"]) < 1e-13
        assert min(gaps["dk"], gaps["dv"]) > 1e-3


@pytest.mark.parametrize("visibility", RULES)
def test_the_reference_by_autograd_equals_plain_loops(visibility: str) -> None:
    """The page's oracle: `math`, one query at a time."""
    found, _ = solved(("2-3", "whole", visibility.replace(" ", "-"), "correct"))
    right = reference(visibility)
    for name, ours in (("output", "output"), ("dQ", "dq"), ("dK", "dk"), ("dV", "dv")):
        assert np.abs(np.array(found[name]) - right[ours]).max() < 1e-15
    loss = math.fsum((INPUTS["dout"] * np.array(found["output"])).ravel()) / 5
    assert abs(float(right["loss"]) - loss) < 1e-15


def test_the_processes_work_on_the_numbers_of_the_page() -> None:
    assert all(np.array_equal(INPUTS[name], lab_facts.INPUTS[name]) for name in INPUTS)


def test_the_report_holds_every_rank_beside_both_references(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    assert lab.main(["--split", "1+4", "--quiet", "--json", str(path), *LIMIT]) == 0
    written = json.loads(path.read_text())
    assert {cell["cell"]["split"] for cell in written["cells"]} == {"1+4"}
    assert np.allclose(written["references"]["full"]["dk"], reference("full")["dk"], atol=1e-15)
    for cell in written["cells"]:
        assert [rank["rank"] for rank in cell["ranks"]] == [0, 1]
        for rank in cell["ranks"]:
            assert np.shape(rank["output"]) == np.shape(rank["dk"]) == (len(rank["positions"]), 2)
            sizes = rank["sent"]["forward"]
            assert sizes["bytes"] == 8 * sizes["elements"] == 32 * len(rank["positions"])
        player = cell["cell"]["code"] == "player"
        assert bool(cell["ranks"][0]["events"]) == player
    assert "rank" in written["event_fields"]


def broken(name: str) -> Any:
    """The player with one thing wrong."""
    if name == "replays nothing":
        return "_replay", lambda self, event, block: None
    if name == "sends twice":
        send = Player._send

        def twice(self: Player, event: Any, block: Any) -> None:
            send(self, event, block)
            self.sent.append(self.sent[-1]) if event.send_to is not None else None

        return "_send", twice
    if name == "forgets an event":
        play = Player._pass

        def forgetful(self: Player, *args: Any) -> None:
            play(self, *args)
            self.played.pop()

        return "_pass", forgetful
    attend = Player._attend

    def poisoned(self: Player, event: Any, block: Any) -> None:
        attend(self, event, (block[0], block[1] + torch.nan))

    return "_attend", poisoned


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("replays nothing", "wrong"),
        ("sends twice", "bytes_equal"),
        ("forgets an event", "events_equal"),
        ("computes NaN", "wrong"),
    ],
)
def test_a_wrong_process_is_seen_and_the_command_fails(
    name: str, seen: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Player, *broken(name))
    some = [c for c in cells(2) if c.path == "correct" and c.split == "2+3"]
    monkeypatch.setattr(lab, "cells", lambda cp_size: some)
    assert lab.main(["--split", "2+3", "--quiet", *LIMIT]) == 1
    printed = capsys.readouterr().out
    assert "agrees: NO" in printed
    assert "disagrees: 2+3, causal" in printed
    report = lab.laboratory(["2+3"], time_limit_s=60)
    by_player = [v for v in report["cells"] if v.cell.code == "player"]
    assert all(bool(getattr(v, seen)) == (seen == "wrong") for v in by_player)
    assert all(v.agrees for v in report["cells"] if v.cell.code == "attention")


def test_a_wrong_path_that_does_no_harm_is_a_disagreement() -> None:
    """From rank 0 to rank 1 a causal 2+3 split has no gradient to lose."""
    cell = Cell("2+3", "causal", "whole shard", "correct", "player", "ring")
    ranks = [first for (first,) in lab.launch(lab.run_cells, 2, [cell])]
    assert lab.judge(cell, ranks).agrees
    assert not lab.judge(cell._replace(path="lost gradient"), ranks).agrees


def test_a_time_limit_that_is_too_short_ends_with_one_clear_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert lab.main(["--split", "2+3", "--quiet", "--time-limit", "0.01"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("python -m cpcore lab: rank 0, ")
    assert "not done within time_limit_s = 0.01" in told


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("starters", [1, 2])
def test_the_command_runs_under_torchrun(starters: int, tmp_path: Path) -> None:
    """Two starters on one machine stand for two machines."""
    path = tmp_path / "report.json"
    meet = ["--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}"]
    options = meet if starters == 2 else ["--standalone"]
    command = ["torch.distributed.run", *options, f"--nproc-per-node={2 // starters}"]
    lab_command = ["cpcore", "lab", "--quiet", "--split", "2+3", "--json", str(path)]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", *command, "-m", *lab_command],
            cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(starters)
    ]  # fmt: skip
    try:
        printed = [process.communicate(timeout=150)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * starters
    assert "".join(printed).count("agrees: yes") == 1, "one rank speaks"
    assert {len(cell["ranks"]) for cell in json.loads(path.read_text())["cells"]} == {2}
