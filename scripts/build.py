"""Build the book: always a clean full build, swapped in only when it succeeded.

A warm build hides the warnings of unchanged pages, so there is none: either nothing changed and
the site stays as it is, or everything is built again in a scratch folder. Warnings are errors,
and the built pages are checked before they replace the old ones.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from scripts import assets, check_site, pyodide_assets
from scripts.pyodide_assets import Files

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
STAMP = ROOT / "_build" / "built-from"
# What a page is made of. Notebooks are taken as stored; nothing is executed here.
INPUT_PATTERNS = [
    "_config.yml",
    "_toc.yml",
    "requirements-book.txt",
    "constraints.txt",
    "book/**/*",
    "cpcore/**/*.py",
    "scripts/assets.json",
    "scripts/*.py",
    "tests/core/*.py",  # links to tests name lines
]
STEP = re.compile(r"^(reading sources|writing output|copying images).*\[\s*\d+%\] \S+")
NO_PYTHON: Files = {}
FAULT = re.compile(r"\b(WARNING|ERROR|CRITICAL): |^\w[\w.]*(Error|Exception)\b")


class BuildError(Exception):
    """The book cannot be built; the message says why, a line per fault."""


def inputs(source: Path) -> Iterator[Path]:
    """Every file that decides what the built site looks like."""
    for pattern in INPUT_PATTERNS:
        for path in sorted(source.glob(pattern)):
            parts = path.relative_to(source).parts
            if path.is_file() and not {"__pycache__", ".ipynb_checkpoints"} & set(parts):
                yield path


def fingerprint(source: Path) -> str:
    """Hash of names and contents of all inputs."""
    digest = hashlib.sha256()
    for path in inputs(source):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(source)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def missing_pages(source: Path) -> list[str]:
    """Pages that the table of contents names and that do not exist."""
    import yaml

    toc = yaml.safe_load((source / "_toc.yml").read_text(encoding="utf-8"))
    names = [toc["root"], *re.findall(r"'file': '([^']+)'", str(toc))]
    return [
        f"_toc.yml: {name}: no such page"
        for name in names
        if not any((source / f"{name}{end}").is_file() for end in (".md", ".ipynb"))
    ]


def follow(output: TextIO, kept: list[str]) -> None:
    """Keep every line of Sphinx and show the ones that tell how far it is."""
    for line in output:
        kept.append(re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip())
        step = STEP.match(kept[-1])
        if step:
            print("  " + re.sub(r"\s+", " ", step.group(0)), flush=True)


def run_sphinx(source: Path, scratch: Path, live: str) -> None:
    """Run Jupyter Book into `scratch`, one short line of progress per page.

    The extension adds Run buttons if CPCORE_LIVE holds the version of the page's Python.
    """
    start_book = "from jupyter_book.cli.main import main; main()"  # it has no `-m` entry
    command = [sys.executable, "-c", start_book, "build", str(source)]
    command += ["--path-output", str(scratch), "-W", "-n", "--keep-going", "--all"]
    environment = dict(os.environ, PYTHONPATH=str(source), PYTHONWARNINGS="ignore", NO_COLOR="1")
    environment["CPCORE_LIVE"] = live
    kept: list[str] = []
    with subprocess.Popen(
        command,
        cwd=source,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    ) as sphinx:
        assert sphinx.stdout is not None  # piped above
        reader = threading.Thread(target=follow, args=(sphinx.stdout, kept))
        reader.start()
        try:
            sphinx.wait()
        finally:
            # A formula server that outlives Sphinx would keep the pipe open for ever.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(sphinx.pid, signal.SIGKILL)
            reader.join()
    if sphinx.returncode:
        faults = [line for line in kept if FAULT.search(line)]
        raise BuildError("\n".join(faults or kept[-15:]))


def build(source: Path, out: Path, python: Files = NO_PYTHON) -> None:
    """Build the book in `source` into the folder `out`, or raise and leave `out` as it was.

    `python` holds the files of Python for the page; without them there are no Run buttons.
    """
    absent = missing_pages(source)
    if absent:
        raise BuildError("\n".join(absent))
    out.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the last step is a rename.
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".scratch-") as folder:
        run_sphinx(source, Path(folder), pyodide_assets.version(python))
        built = Path(folder) / "_build" / "html"
        pyodide_assets.write(python, built)
        faults = check_site.check_site(built)
        if faults:
            raise BuildError("\n".join(faults))
        shutil.rmtree(out, ignore_errors=True)
        built.rename(out)


def page_python(source: Path) -> Files:
    """The files of Python for the page, none if no source has them; with CI set that fails."""
    try:
        return pyodide_assets.for_site(pyodide_assets.ensure(), source)
    except assets.AssetError as error:
        if os.environ.get("CI"):
            raise
        print(f"{error}\nThe book is built without Run buttons.", flush=True)
        return NO_PYTHON


def state(source: Path, out: Path, python: Files) -> str:
    """What the stamp holds: hash of the inputs, hash of names and sizes of the built files."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    built = "".join(f"{path.relative_to(out)}\0{path.stat().st_size}\0" for path in files)
    inputs_hash = fingerprint(source) + pyodide_assets.version(python)
    return f"{inputs_hash} {hashlib.sha256(built.encode()).hexdigest()}"


def main() -> None:
    """Build the site unless it is up to date."""
    parser = argparse.ArgumentParser(prog="python -m scripts.build", description=__doc__)
    parser.add_argument("--out", type=Path, default=SITE, help="folder of the built site")
    parser.add_argument("--source", type=Path, default=ROOT, help="root of the book's sources")
    args = parser.parse_args()
    start = time.monotonic()
    try:
        python = page_python(args.source)
        before = state(args.source, args.out, python)
        ours = args.out == SITE
        if ours and STAMP.exists() and STAMP.read_text() == before:
            print("Nothing changed: _build/html is up to date.")
            return
        print("Building the book (all pages, warnings are errors) ...", flush=True)
        assets.ensure("katex")
        build(args.source, args.out, python)
    except assets.AssetError as error:
        sys.exit(f"Hosted files are missing: {error}")
    except BuildError as error:
        sys.exit(f"{error}\nThe book was not built: see the lines above.")
    if ours:
        # An input that changed meanwhile is not in the pages: keep the hash from before.
        STAMP.write_text(f"{before.split()[0]} {state(args.source, SITE, python).split()[1]}")
    print(f"Built in {time.monotonic() - start:.0f} s: {args.out}", flush=True)


if __name__ == "__main__":
    main()
