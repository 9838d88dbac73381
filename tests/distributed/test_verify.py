"""Random problems on real processes: the bound is the project's, and a wrong result exceeds it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from cpcore.distributed import bounds, verify
from cpcore.distributed.arguments import PROTOCOLS
from cpcore.distributed.cases import DTYPES, LAYOUTS, RULES, Case, draw
from cpcore.distributed.rank import Block, RankAttention
from cpcore.distributed.state import Total
from tests.support.tolerance import Problem, reference, tolerance

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = dict(os.environ, PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1")


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_reference_and_bound_are_those_of_the_project(seed: int, dtype: str) -> None:
    """The bound written again in torch: the tests' own, with n = the most keys of a row."""
    rule = list(RULES)[seed % len(RULES)]
    problem = draw(Case(seed, 3, "uneven", rule, "ring", dtype)).problem
    right = bounds.solve(problem)
    allowed = bounds.allowed(problem, right)
    arrays = [x.numpy() for x in problem[:4]]
    keep = None if problem.keep is None else problem.keep.numpy()
    visible = problem.visible.numpy()
    p = Problem(*arrays[:3], visible, problem.scale, keep, arrays[3])
    wanted, most = reference(p), tolerance(p, max(1, int(visible.sum(axis=-1).max())))
    for name, want, bound in zip(
        bounds.RESULTS, (wanted.out, *wanted[2:]), (most.out, *most[2:]), strict=True
    ):
        assert (np.abs(right[name].numpy() - want) <= 2 * tolerance_of(bound, dtype)).all(), name
        assert np.allclose(allowed[name].numpy(), bound.astype(float), rtol=1e-9, atol=0), name


def tolerance_of(bound: np.ndarray, dtype: str) -> np.ndarray:
    """The bound of float64 arithmetic, in which the reference is computed."""
    ratio = np.finfo(np.float64).eps / np.finfo(dtype).eps
    return bound * ratio


def test_every_combination_is_drawn_and_every_problem_has_something_to_see() -> None:
    seen = set()
    for seed in range(40):
        drawn = draw(Case(seed, 4, "uneven", "packed", "ring", "bfloat16"))
        seen.add((drawn.dropout is None, drawn.problem.q.shape[1] > drawn.problem.k.shape[1]))
        padded = drawn.rule.padding(np.arange(drawn.layout.seq_len))
        assert torch.isnan(drawn.arrays[1][:, :, torch.from_numpy(padded)]).all()
        assert torch.isfinite(drawn.problem.k).all()
    assert seen == {(a, b) for a in (True, False) for b in (True, False)}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """Three ranks, one case of every layout, rule and dtype, by the ring; as JSON."""
    path = tmp_path_factory.mktemp("verify") / "report.json"
    options = ["--ranks", "3", "--protocol", "ring", "--quiet", "--json", str(path)]
    assert verify.main(options) == 0
    return json.loads(path.read_text())


def test_every_layout_rule_and_dtype_is_within_half_of_the_bound(report: dict) -> None:
    cells = {(c["case"]["layout"], c["case"]["visibility"], c["case"]["dtype"])
             for c in report["cases"]}  # fmt: skip
    assert len(cells) == len(LAYOUTS) * len(RULES) * len(DTYPES)
    assert report["refused"] == 0
    for case in report["cases"]:
        assert case["messages_equal"]
        assert max(case["shares"].values()) < 0.5, case
    assert max(case["shares"]["dk"] for case in report["cases"]) > 0.01, "nothing was compared"


def test_the_table_counts_refusals_and_names_their_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [
        Case(seed, 2, "zigzag", "causal", protocol, "float64")
        for seed, protocol in enumerate(["ring", "carrier pigeon"])
    ]
    monkeypatch.setattr(verify, "choose", lambda options: cases)
    assert verify.main(["--quiet"]) == 0
    printed = capsys.readouterr().out
    assert "2 cases on 2 ranks, 1 refused; agrees: yes" in printed
    assert "refused: protocol: expected one of" in printed


def test_nothing_but_refusals_is_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(0, 2, "zigzag", "causal", "carrier pigeon", "float64")
    monkeypatch.setattr(verify, "choose", lambda options: [case])
    assert verify.main(["--quiet"]) == 1


@pytest.mark.parametrize("wrong", ["a late dq", "own keys only"])
def test_a_wrong_attention_is_seen_and_its_seed_is_printed(
    wrong: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = RankAttention.replay if wrong == "a late dq" else RankAttention.attend

    def late(self: RankAttention, block: Block) -> tuple[Total, Total]:
        shares = right(self, block)
        for part in self.dq.parts.values():
            part.mul_(1 + 1e-10)  # a relative fault far above rounding, invisible to the eye
        return shares

    def short_sighted(self: RankAttention, block: Block) -> None:
        if np.array_equal(block.positions, self.positions):
            right(self, block)

    if wrong == "a late dq":
        monkeypatch.setattr(RankAttention, "replay", late)
    else:
        monkeypatch.setattr(RankAttention, "attend", short_sighted)
    options = ["--protocol", "ring", "--dtype", "float64", "--layout", "striped"]
    assert verify.main([*options, "--visibility", "full", "--seq-len", "32", "--quiet"]) == 1
    assert "wrong: Case(seed=0" in capsys.readouterr().out


def test_the_command_runs_under_torchrun() -> None:
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "cpcore"]
    options = ["verify", "--layout", "uneven", "--protocol", "direct", "--quiet"]
    done = subprocess.run(
        [sys.executable, *command, *options],
        cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("15 cases on 2 ranks, 0 refused; agrees: yes") == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--ranks", "0"], "ranks: expected an integer of at least 1, received 0"),
        (["--cases", "0"], "cases: expected an integer of at least 1, received 0"),
        (["--seq-len", "-1"], "seq-len: expected an integer of at least 0, received -1"),
        (["--seed", "-1"], "seed: expected an integer of at least 0, received -1"),
    ],
)
def test_wrong_options_are_named(
    options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify.main(options) == 2
    assert f"python -m cpcore verify: {told}" in capsys.readouterr().err


def test_protocols_include_the_one_that_has_no_schedule() -> None:
    assert set(PROTOCOLS) - set(verify.SCHEDULED) == {"all_to_all"}
