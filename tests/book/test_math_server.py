"""A formula server that is slow to listen delays the build, it does not fail it."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A server whose socket exists for a while before it listens.
SLOW = """
import socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
time.sleep(0.3)
server.listen()
server.accept()[0].sendall(b"ready")
"""


@pytest.fixture
def mathserver() -> ModuleType:
    path = ROOT / "book" / "_ext" / "mathserver.py"
    spec = importlib.util.spec_from_file_location("mathserver", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def server(script: str) -> SimpleNamespace:
    """A class like katex's, of which only the command is used."""
    return SimpleNamespace(build_command=lambda socket: [sys.executable, "-c", script, str(socket)])


def test_a_socket_that_does_not_listen_yet_is_waited_for(
    mathserver: ModuleType, tmp_path: Path
) -> None:
    process, connection = mathserver.start(server(SLOW), tmp_path, 30.0)
    with process, connection:
        assert connection.recv(5) == b"ready"
    assert process.returncode == 0


def test_a_server_that_dies_is_an_error(mathserver: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        mathserver.start(server("raise SystemExit(3)"), tmp_path, 30.0)


def test_a_server_that_never_listens_is_stopped(mathserver: ModuleType, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    never = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(FileNotFoundError):
        mathserver.start(server(never), tmp_path, 1.0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)
