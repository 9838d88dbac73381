"""A missing prerequisite is one clear line, and what is done is not done again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
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
    monkeypatch.setattr(env, "usable", lambda: env.VENV.is_dir())
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
    lay_out_environment()
    (env.VENV / "made").touch()
    ran = fake_commands(monkeypatch)
    env.make_venv()
    assert not ran
    (env.VENV / "pyvenv.cfg").write_text("version = 3.9.1\n")
    env.make_venv()
    assert ran == ["venv"]


def lay_out_environment() -> None:
    """The files by which a finished environment and a half-made one look alike."""
    env.PYTHON.parent.mkdir(parents=True)
    env.PYTHON.touch()
    (env.VENV / "pyvenv.cfg").write_text("version = {}.{}.0\n".format(*sys.version_info[:2]))


def fake_commands(monkeypatch: pytest.MonkeyPatch, pip_answers: int = 0) -> list[str]:
    """Names of the modules that were run from now on; `venv` lays its files out again."""
    ran: list[str] = []

    def run(command: list[str]) -> SimpleNamespace:
        ran.append(command[2])
        if command[2] == "venv":
            assert not env.VENV.exists()
            lay_out_environment()
        return SimpleNamespace(returncode=pip_answers if command[2] == "pip" else 0, stdout="")

    monkeypatch.setattr(env, "run", run)
    return ran


def test_an_environment_whose_making_was_interrupted_is_made_anew(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out_environment()
    ran = fake_commands(monkeypatch, pip_answers=1)
    env.make_venv()
    assert ran == ["pip", "venv"]
    env.make_venv()
    assert ran == ["pip", "venv"]  # now it is known to be finished


def test_a_good_environment_without_the_stamp_is_adopted_once(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out_environment()
    ran = fake_commands(monkeypatch)
    env.make_venv()
    env.make_venv()
    assert ran == ["pip"]


def test_a_python_that_does_not_run_is_no_environment(project: Path) -> None:
    lay_out_environment()  # its Python is an empty file without the right to run
    assert not env.usable()


@pytest.mark.parametrize("gone", ["pyvenv.cfg", "bin/python"])
def test_a_damaged_environment_is_made_and_filled_anew_whatever_its_stamps_say(
    project: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    ran = fake_commands(monkeypatch)
    installed: list[str] = []
    monkeypatch.setattr(env, "install", installed.append)
    env.ensure("all")
    env.ensure("all")
    assert (ran, installed) == (["venv"], ["all"])
    (env.VENV / gone).unlink()
    env.ensure("all")
    assert (ran, installed) == (["venv"] * 2, ["all"] * 2)


def test_an_interrupted_making_leaves_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(command: list[str]) -> None:
        lay_out_environment()
        raise KeyboardInterrupt

    monkeypatch.setattr(env, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        env.make_venv()
    assert not env.VENV.exists()


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment without pip, for a pip of ours."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin/python"


@pytest.fixture
def pip_says(
    project: Path, bare_python: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Replaces pip by one that says this and fails; asked for all details, it says `more`."""

    def replace(text: str, more: str = "") -> None:
        fake = project / "fake"
        (fake / "pip").mkdir(parents=True)
        (fake / "pip/__main__.py").write_text(
            f"import sys\nprint({more!r} if '-vv' in sys.argv else {text!r})\n"
            f"sys.exit('-vv' not in sys.argv or {bool(more)})\n"
        )
        monkeypatch.setattr(env, "PYTHON", bare_python)
        monkeypatch.setenv("PYTHONPATH", str(fake))

    return replace


NOTHING = "ERROR: No matching distribution found for x"
NO_NETWORK = [
    "NewConnectionError: failed to establish a new connection",
    "Could not fetch URL: SSLError(SSLCertVerificationError(1))",
    "HTTPSConnectionPool(host='x', port=443): Max retries exceeded with url: /simple",
    "Retrying (Retry(total=4)) after connection broken by 'ProtocolError'",
    "[Errno 101] Network is unreachable",
    "[Errno -3] Temporary failure in name resolution",
    "ReadTimeoutError: Read timed out.",
    "ProxyError('Cannot connect to proxy.')",
]


@pytest.mark.parametrize("line", NO_NETWORK)
def test_no_network_is_one_line(pip_says: Callable[..., None], line: str) -> None:
    pip_says(f"WARNING: {line}\n{NOTHING}")
    with pytest.raises(env.SetupError, match=r"^No network: pip reached no package index") as error:
        env.install("book")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", [NOTHING, "ERROR: Cannot install a and b: conflict"])
def test_no_network_is_noticed_when_pip_keeps_quiet_about_it(
    pip_says: Callable[..., None], text: str
) -> None:
    pip_says(text, more="Could not fetch URL: Max retries exceeded")
    with pytest.raises(env.SetupError, match=r"^No network: pip reached no package index"):
        env.install("book")


def test_a_missing_package_of_a_reachable_index_is_named(pip_says: Callable[..., None]) -> None:
    pip_says(NOTHING)
    with pytest.raises(env.SetupError, match=r"No matching distribution found for x$"):
        env.install("book")


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
