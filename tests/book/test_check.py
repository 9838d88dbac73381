"""The test run names its files itself: none may be forgotten, none run twice."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from scripts import check

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_file_and_notebook_runs_once_and_the_listed_ones_first() -> None:
    found = check.files()
    tests = {p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("test_*.py")}
    notebooks = {p.relative_to(ROOT).as_posix() for p in (ROOT / "book").glob("*.ipynb")}
    assert sorted(found) == sorted(tests | notebooks)
    starts = [next(i for i, file in enumerate(found) if file.startswith(n)) for n in check.TESTS]
    assert starts[:-1] == sorted(starts[:-1]), "in the order of the list"
    assert found[0] == check.TESTS[0], "the file that builds the site comes first"
    assert [name for name in check.TESTS if not (ROOT / name).exists()] == []


def test_other_arguments_reach_pytest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        seen.append(command)
        return subprocess.CompletedProcess(command, 5)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(check.assets, "ensure", lambda name: None)
    monkeypatch.setattr(check, "ROOT", tmp_path)  # it clears what an earlier run has counted
    assert check.test(["-k", "zigzag"]) == 5
    assert seen[0][seen[0].index("-k") :][:2] == ["-k", "zigzag"]
