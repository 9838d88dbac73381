"""`python -m cpcore exercise`: the judge in a terminal."""

import subprocess
import sys
from pathlib import Path

import pytest

from cpcore.exercises import catalogue, progress, starter
from cpcore.exercises.command import main
from cpcore.exercises.sources import model_source

NAME = "merge_chunk_stats"


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    path = tmp_path / "answer.py"
    path.write_text(model_source(NAME), encoding="utf-8")
    return path


def test_the_package_hands_the_command_on(answer: Path) -> None:
    command = [sys.executable, "-m", "cpcore", "exercise", NAME, str(answer)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "merge_chunk_stats: accepted" in done.stdout


def test_a_starter_is_not_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.py"
    assert main([NAME, "--starter"]) == 0
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    assert path.read_text(encoding="utf-8").rstrip() == starter(NAME).rstrip()
    assert main([NAME, str(path)]) == 1
    assert "not written yet" in capsys.readouterr().out
    assert main([NAME, str(path), "--run"]) == 1


def test_run_shows_the_examples(answer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([NAME, str(answer), "--run"]) == 0
    assert "2 of 2 examples right" in capsys.readouterr().out
    assert not progress.solved(NAME)


def test_the_list_shows_what_is_solved(answer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([NAME, "--hint"]) == 0
    assert main([NAME, str(answer)]) == 0
    capsys.readouterr()
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"1 of {len(catalogue)} exercises solved"
    assert [line.split()[0] for line in lines[2:]] == list(catalogue)
    mine = next(line for line in lines if line.startswith(NAME))
    assert "solved" in mine
    assert "1 of 3 hints" in mine


def test_progress_travels_by_export_and_import(
    answer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([NAME, str(answer)])
    capsys.readouterr()
    assert main(["--export"]) == 0
    carried = tmp_path / "carried.json"
    carried.write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["--reset"]) == 0
    assert not progress.solved(NAME)
    assert main(["--import", str(carried)]) == 0
    assert progress.solved(NAME)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("def merge_chunk_stats(", "SyntaxError"),
        ("x = 1", "expected a function merge_chunk_stats"),
        ("import sys\nsys.exit()", "called exit"),
    ],
)
def test_a_file_that_gives_no_answer_is_told_in_words(
    text: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "answer.py"
    path.write_text(text, encoding="utf-8")
    assert main([NAME, str(path)]) == 2
    assert word in capsys.readouterr().out


def test_misuse_is_told_and_has_its_own_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert NAME in capsys.readouterr().out
    assert main(["nothing"]) == 2
    assert "expected one of" in capsys.readouterr().out
    assert main([NAME, "no/such/file.py"]) == 2
    assert "no/such/file.py" in capsys.readouterr().out


def test_a_name_alone_shows_what_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([NAME]) == 0
    text = capsys.readouterr().out
    assert catalogue[NAME].title in text
    assert "Return (output, sum, max)" in text
