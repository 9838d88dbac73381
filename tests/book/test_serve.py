"""`make serve`: a port that is free, right types, the 404 page, a clean end."""

from __future__ import annotations

import errno
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from scripts import serve
from tests.support.browser import serving as in_process

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def serving(
    tmp_path: Path, before: Callable[[], object] | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program as `make serve` starts it, and its address; `before` runs in the new process."""
    for name in ("index.html", "404.html", "a.js", "a.svg", "a.woff2", "a.css"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    command = [sys.executable, "-m", "scripts.serve", "--site", str(tmp_path)]
    environment = dict(os.environ, OPEN="0")
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, preexec_fn=before
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            match = re.fullmatch(r"Serving (http://localhost:\d+)\n", line)
            assert match, line
            yield process, match[1].replace("localhost", "127.0.0.1")
        finally:
            process.kill()


def fetch(url: str) -> tuple[int, str, str]:
    """Status, type and text of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def test_every_answer_has_the_headers_that_the_readme_advises(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = readme.split("## Hosting")[1].split("```")[1]
    advised = dict(re.findall(r"^([A-Z][\w-]+): (.*)$", re.sub(r"\n +", " ", block), re.MULTILINE))
    assert advised == serve.HEADERS
    with serving(tmp_path) as (_, address):
        for name in ("index.html", "a.js"):
            with urllib.request.urlopen(f"{address}/{name}", timeout=5) as answer:
                assert serve.HEADERS.items() <= dict(answer.headers).items()


def test_files_types_and_missing_pages(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, address):
        check_answers(address)


def check_answers(address: str) -> None:
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


def test_the_files_of_a_page_come_over_one_connection(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, address):
        link = http.client.HTTPConnection(urlsplit(address).netloc, timeout=5)
        for name, text in (
            ("a.js", "a.js"),
            ("no", "404.html"),
            ("", "index.html"),
            ("a.css", "a.css"),
        ):
            link.request("GET", f"/{name}")
            used = link.sock
            assert link.getresponse().read().decode() == text
            assert link.sock is used is not None
        link.close()


def test_the_second_part_of_an_answer_does_not_wait_for_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index.html").write_text("page")
    waits: list[bool] = []
    send = serve.Handler.end_headers

    def noted(handler: serve.Handler) -> None:
        option = handler.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        waits.append(not option)
        send(handler)

    monkeypatch.setattr(serve.Handler, "end_headers", noted)
    with in_process(tmp_path) as address:
        assert fetch(address)[0] == 200
    assert waits == [False]


def test_a_reader_who_leaves_in_the_middle_of_a_file_is_no_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path) as (_, address):
        (tmp_path / "large.js").write_bytes(bytes(8 << 20))
        for _ in range(3):
            link = http.client.HTTPConnection(urlsplit(address).netloc, timeout=5)
            link.request("GET", "/large.js")
            link.getresponse().read(10)
            # Closed with unread data: the next write of the server is answered by a reset.
            link.close()
        assert fetch(f"{address}/a.css")[2] == "a.css"
        time.sleep(0.2)
    assert capfd.readouterr().err == ""


def ignore_signals() -> None:
    """What a shell without job control does to a program that it starts with `&`, and more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=lambda sent: sent.name)
@pytest.mark.parametrize("before", [None, ignore_signals], ids=["terminal", "background"])
def test_a_signal_ends_it_cleanly_wherever_it_was_started(
    tmp_path: Path, before: Callable[[], object] | None, sent: signal.Signals
) -> None:
    with serving(tmp_path, before) as (process, _):
        process.send_signal(sent)
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


def test_a_port_in_use_on_ipv6_is_passed_over(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET6) as taken:
        try:
            taken.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
        taken.listen()
        port = taken.getsockname()[1]
        with serve.open_server(tmp_path, range(port, port + 50)) as server:
            assert port < server.server_address[1] < port + 50


def test_a_machine_without_ipv6_has_no_port_taken_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*args: object) -> None:
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

    monkeypatch.setattr(serve.socket, "socket", absent)
    assert not serve.taken_on_ipv6(8000)


def test_only_this_machine_is_served(tmp_path: Path) -> None:
    with serve.open_server(tmp_path, range(1)) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_nothing_to_serve_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scripts.serve", "--site", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "There is no built book to serve: run `make html` first.\n"
