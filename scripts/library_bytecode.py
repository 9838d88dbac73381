"""Runs in Pyodide: a copy of its library in which all that a start imports is compiled.

In the copy a module is `x.pyc` in place of `x.py`, without a check of the time at which it was
written: an import from a zip takes the first of the two that is there.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import zipfile
from importlib import _bootstrap_external
from pathlib import Path

LIBRARY = "/lib/python312.zip"
# What every page imports beside Pyodide itself: numpy, and what `cpcore` takes from the library.
STARTED = ("numpy", "dataclasses", "fractions", "hashlib", "html", "json", "tomllib")


def compiled(name: str, source: bytes) -> bytes:
    """The content of a .pyc file that is never compared with its source."""
    code = compile(source, f"{LIBRARY}/{name}", "exec", dont_inherit=True)
    digest = importlib.util.source_hash(source)
    return bytes(_bootstrap_external._code_to_hash_pyc(code, digest, False))  # type: ignore[attr-defined]


def imported() -> set[str]:
    """Names in the library of the modules that have been imported so far."""
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    return {file.removeprefix(f"{LIBRARY}/") for file in files if file.startswith(LIBRARY)}


def main(target: Path) -> None:
    """Write the copy."""
    for name in STARTED:
        importlib.import_module(name)
    start = imported()
    with (
        zipfile.ZipFile(LIBRARY) as library,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as copy,
    ):
        for entry in library.infolist():
            content = library.read(entry)
            replaced = entry.filename in start
            info = zipfile.ZipInfo(entry.filename + "c" * replaced)  # the date stays 1980
            info.compress_type = zipfile.ZIP_DEFLATED
            copy.writestr(info, compiled(entry.filename, content) if replaced else content)


if sys.platform == "emscripten":
    main(Path("/host/library.zip"))
