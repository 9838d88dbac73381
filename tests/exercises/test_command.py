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


def test_run_needs_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([NAME, "--run"]) == 2
    assert "--run: expected a file with your answer, received none" in capsys.readouterr().out


def test_a_missing_file_is_told_without_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([NAME, "no_file.py"]) == 2
    assert capsys.readouterr().out == "no_file.py: No such file or directory\n"


def test_reset_says_how_much_it_forgot(capsys: pytest.CaptureFixture[str]) -> None:
    main([NAME, "--hint"])
    capsys.readouterr()
    assert main(["--reset"]) == 0
    assert capsys.readouterr().out == "forgot 1 exercise\n"


def test_help_says_where_the_progress_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert str(progress.path()) in "".join(line.strip() for line in text.split("\n"))
    assert "CPCORE_PROGRESS" in text


def test_an_output_that_is_not_read_to_its_end_ends_quietly() -> None:
    command = [sys.executable, "-m", "cpcore", "exercise", "--list"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        assert started.stderr.read() == ""
        assert started.wait(timeout=60) == 1


def test_an_answer_that_nothing_else_stops_ends_with_the_process(tmp_path: Path) -> None:
    path = tmp_path / "answer.py"
    path.write_text("import sys, signal\n\n\ndef merge_chunk_stats(acc, chunk):\n"
                    "    sys.settrace(None)\n    signal.setitimer(signal.ITIMER_REAL, 0)\n"
                    "    while True:\n        pass\n")  # fmt: skip
    code = (
        "from cpcore.exercises import command\n"
        "command.HARD_S = 3.0\n"
        f"command.main(['{NAME}', {str(path)!r}, '--run'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert "could not be stopped" in done.stdout
