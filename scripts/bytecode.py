"""The page's Python starts in two thirds of the time if its library comes compiled.

Pyodide ships its library as text, and each start compiles what it imports: a second, on every page.
Here it does so once, at build, in Node; the result is kept in `.cache/` under the sum of all that
it depends on. Everything else of Pyodide is hosted as it came.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import tempfile
import zipfile
from pathlib import Path

from scripts import assets

SCRIPTS = Path(__file__).resolve().parent
LIBRARY = "python_stdlib.zip"
START = "import numpy, json"
LIMIT_S = 120.0
REASON = 200  # characters of an error that are told: a line of Pyodide may have a megabyte

Files = dict[str, bytes]  # name in the site's folder -> content


def with_compiled_library(files: Files, cache: Path) -> Files:
    """The files, with the library replaced by its compiled copy.

    Raises: AssetError if Pyodide does not run, or does not start from the copy.
    """
    runner, script = SCRIPTS / "pyodide_run.js", SCRIPTS / "library_bytecode.py"
    digest = hashlib.sha256(runner.read_bytes() + script.read_bytes())
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    kept = cache / "pyodide-library" / f"{digest.hexdigest()}.zip"
    if not kept.exists() or problem(kept.read_bytes(), files[LIBRARY]):
        kept.parent.mkdir(parents=True, exist_ok=True)
        print("Compiling the library of the page's Python ...", flush=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix="making-") as folder:
            made = make(files, Path(folder), runner, script)
            made.replace(kept)
    return files | {LIBRARY: kept.read_bytes()}


def make(files: Files, folder: Path, runner: Path, script: Path) -> Path:
    """Path of the copy, from which Pyodide has started once."""
    pyodide = folder / "pyodide"
    pyodide.mkdir()
    for name, content in files.items():
        (pyodide / name).write_bytes(content)
    run(runner, pyodide, folder, script.read_text(encoding="utf-8"))
    made = folder / "library.zip"
    content = made.read_bytes() if made.exists() else b""
    if fault := problem(content, files[LIBRARY]):
        raise assets.AssetError(f"Python for the page: its compiled library {fault}.")
    (pyodide / LIBRARY).write_bytes(content)
    run(runner, pyodide, folder, START)
    return made


def problem(copy: bytes, library: bytes) -> str:
    """What is wrong with a compiled copy of a library, if anything."""
    try:
        with (
            zipfile.ZipFile(io.BytesIO(copy)) as made,
            zipfile.ZipFile(io.BytesIO(library)) as whole,
        ):
            if damaged := made.testzip():
                return f"has a damaged {damaged}"
            names = [text_name(name) for name in made.namelist()]
            if missing := sorted(set(whole.namelist()) - set(names)):
                return f"lacks {missing[0]}"
            if len(names) > len(whole.namelist()):
                return "has more files than the library"
            same = set(made.namelist()) & set(whole.namelist())
            changed = sorted(name for name in same if made.read(name) != whole.read(name))
            return f"has another {changed[0]}" if changed else ""
    except zipfile.BadZipFile:
        return "is no zip"


def text_name(name: str) -> str:
    """The name that a file of the copy has in the library."""
    return name.removesuffix("c") if name.endswith(".pyc") else name


def run(runner: Path, pyodide: Path, host: Path, text: str) -> None:
    """Run Python text in Pyodide under Node."""
    try:
        command = [str(assets.node_folder() / "node"), str(runner), str(pyodide), str(host)]
        done = subprocess.run(
            command, input=text.encode(), capture_output=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        told = f"Python for the page: Pyodide did not end in {LIMIT_S:g} s under Node."
        raise assets.AssetError(told) from error
    except (ImportError, OSError) as error:
        told = f"Python for the page: Node cannot be started: {error}"
        raise assets.AssetError(told) from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1][:REASON] if lines else f"exit code {done.returncode}"
        raise assets.AssetError(f"Python for the page: Pyodide fails under Node: {reason}")
