"""A missing prerequisite is one clear line, and what is done is not done again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts import env


@pytest.mark.parametrize("version", [(3, 8), (3, 10, 4), (3, 13), (4, 0)])
def test_a_python_that_was_not_tried_is_refused(version: tuple[int, ...]) -> None:
    with pytest.raises(env.SetupError, match=r"Python 3\.11 or 3\.12 is needed, found"):
        env.check_python(version)


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 1)])
def test_a_python_that_was_tried_is_accepted(version: tuple[int, ...]) -> None:
    env.check_python(version)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with requirement files and no environment; installing is only counted."""
    for name in env.SETS["all"]:
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(env, "ROOT", tmp_path)
    monkeypatch.setattr(env, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(env, "PYTHON", tmp_path / ".venv/bin/python")
    return tmp_path


def count_installs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    done: list[str] = []
    monkeypatch.setattr(env, "make_venv", lambda: env.VENV.mkdir(exist_ok=True))
    monkeypatch.setattr(env, "install", done.append)
    return done


def test_a_finished_step_is_not_repeated(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = count_installs(monkeypatch)
    env.ensure("book")
    env.ensure("book")
    assert done == ["book"]


def test_the_full_set_serves_the_book_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = count_installs(monkeypatch)
    env.ensure("all")
    env.ensure("book")
    assert done == ["all"]


def test_a_changed_requirement_is_installed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = count_installs(monkeypatch)
    env.ensure("book")
    (project / "constraints.txt").write_text("changed")
    env.ensure("book")
    assert done == ["book", "book"]


def test_an_interrupted_install_is_done_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = count_installs(monkeypatch)
    env.ensure("book")
    (project / "requirements-book.txt").write_text("changed")

    def stop(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(env, "install", stop)
    with pytest.raises(KeyboardInterrupt):
        env.ensure("book")
    monkeypatch.setattr(env, "install", done.append)
    env.ensure("book")
    assert done == ["book", "book"]


def test_a_python_without_ensurepip_names_the_package(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "The virtual environment was not created ... ensurepip is not available.\nmore\n"
    answer = SimpleNamespace(returncode=1, stdout=message)
    monkeypatch.setattr(env.subprocess, "run", lambda *args, **kwargs: answer)
    with pytest.raises(env.SetupError, match="apt-get install python3-venv") as error:
        env.make_venv()
    assert "\n" not in str(error.value)
    assert not env.VENV.exists()


def test_an_environment_of_another_python_is_made_anew(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    answer = SimpleNamespace(returncode=0, stdout="")
    monkeypatch.setattr(env.subprocess, "run", lambda *args, **kwargs: made.append(args) or answer)
    env.PYTHON.parent.mkdir(parents=True)
    env.PYTHON.touch()
    (env.VENV / "pyvenv.cfg").write_text("version = {}.{}.0\n".format(*sys.version_info[:2]))
    env.make_venv()
    assert not made
    (env.VENV / "pyvenv.cfg").write_text("version = 3.9.1\n")
    env.make_venv()
    assert len(made) == 1


def test_no_network_is_one_line(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env.VENV], check=True)
    fake = env.VENV / "fake"
    (fake / "pip").mkdir(parents=True)
    says = "WARNING: Retrying: NewConnectionError\\nERROR: No matching distribution found for x"
    (fake / "pip/__main__.py").write_text(f"import sys\nprint('{says}')\nsys.exit(1)\n")
    monkeypatch.setenv("PYTHONPATH", str(fake))
    with pytest.raises(env.SetupError, match=r"^No network: pip reached no package index") as error:
        env.install("book")
    assert "\n" not in str(error.value)


def test_a_missing_python_is_one_line() -> None:
    done = subprocess.run(
        ["make", "html", "PYTHON=no-such-python"],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert done.stdout.startswith("No no-such-python here: install Python 3.11 or 3.12")
    assert done.stdout.count("\n") == 1
