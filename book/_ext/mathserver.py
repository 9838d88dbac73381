"""Start the server that renders formulas, without the race of sphinxcontrib-katex 0.9.11.

Its start waits until the socket's file exists and connects at once. A socket exists before it
listens: on a busy machine the connection was refused and the build failed with all formulas right.
"""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from typing import Any

TIMEOUT_S = 120.0  # the 5 s of upstream are too few on a busy machine
PAUSE_S = 0.005


def start(cls: Any, rundir: Path, timeout: float) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The server's process and a connection to it; stands in for `start_server_process`."""
    address = rundir / "katex.sock"
    process = subprocess.Popen(
        cls.build_command(socket=address),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=rundir,
    )
    end = time.monotonic() + timeout
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(address))
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            if process.poll() is not None or time.monotonic() > end:
                with process:
                    process.kill()  # else it outlives the build
                raise
            time.sleep(PAUSE_S)
        else:
            return process, connection


def install() -> None:
    """Use this start, and times that a busy machine can keep."""
    from sphinxcontrib import katex

    katex.STARTUP_TIMEOUT = katex.RENDER_TIMEOUT = TIMEOUT_S
    katex.KaTeXServer.start_server_process = classmethod(start)
