"""The test run names its files itself: none may be forgotten, none run twice."""

from pathlib import Path

from scripts import check

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_file_and_notebook_runs_once_and_the_listed_ones_first() -> None:
    found = check.files()
    tests = {p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("test_*.py")}
    notebooks = {p.relative_to(ROOT).as_posix() for p in (ROOT / "book").glob("*.ipynb")}
    assert sorted(found) == sorted(tests | notebooks)
    assert found[0] == check.TESTS[0], "the file that builds the site comes first"
    assert [name for name in check.TESTS if not (ROOT / name).exists()] == []
