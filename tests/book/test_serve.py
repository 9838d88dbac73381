"""`make serve`: a port that is free, right types, the 404 page, a clean end."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import serve

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program as `make serve` starts it, and its address."""
    for name in ("index.html", "404.html", "a.js", "a.svg", "a.woff2", "a.css"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    command = [sys.executable, "-m", "scripts.serve", "--site", str(tmp_path)]
    environment = dict(os.environ, OPEN="0")
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.fullmatch(r"Serving (http://localhost:\d+)\n", line)
        assert match, line
        yield process, match[1].replace("localhost", "127.0.0.1")
        process.kill()


def fetch(url: str) -> tuple[int, str, str]:
    """Status, type and text of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def test_files_types_missing_pages_and_the_end(
    served: tuple[subprocess.Popen[str], str],
) -> None:
    process, address = served
    types = {name: fetch(f"{address}/{name}")[1] for name in ("a.js", "a.css", "a.svg", "a.woff2")}
    assert types == {
        "a.js": "text/javascript; charset=utf-8",
        "a.css": "text/css; charset=utf-8",
        "a.svg": "image/svg+xml",
        "a.woff2": "font/woff2",
    }
    assert fetch(f"{address}/")[::2] == (200, "index.html")
    for missing in ("no/such/page.html", "folder/"):
        assert fetch(f"{address}/{missing}")[::2] == (404, "404.html")
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    assert rest.strip() == "Stopped."


def test_a_port_in_use_is_passed_over(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = serve.open_server(tmp_path, range(port, port + 50))
        with server:
            assert port < server.server_address[1] < port + 50


def test_only_this_machine_is_served(tmp_path: Path) -> None:
    with serve.open_server(tmp_path, range(1)) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_nothing_to_serve_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scripts.serve", "--site", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "There is no built book to serve: run `make html` first.\n"
