"""Start the program that renders formulas so that a busy machine does not break the build.

sphinxcontrib-katex connects as soon as the server's socket file exists. The server may not listen
yet: the connection is then refused, the build fails at random and a Node process stays behind.
"""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from subprocess import PIPE

LIMIT_S = 120


def start_server(rundir: Path, timeout: float) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The running server and a connection to it; tries until it listens."""
    from sphinxcontrib.katex import KaTeXError, KaTeXServer

    path = rundir / "katex.sock"
    process = subprocess.Popen(
        KaTeXServer.build_command(socket=path), stdin=PIPE, stdout=PIPE, cwd=rundir
    )
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline and process.poll() is None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
            return process, connection
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            time.sleep(0.01)
    process.kill()
    raise KaTeXError(f"the formula server did not start within {timeout} s")


def use(node: Path) -> None:
    """Make sphinxcontrib-katex render with this Node and start it as above."""
    from sphinxcontrib import katex

    katex.NODEJS_BINARY = str(node)
    katex.STARTUP_TIMEOUT = katex.RENDER_TIMEOUT = LIMIT_S
    katex.KaTeXServer.start_server_process = staticmethod(start_server)
