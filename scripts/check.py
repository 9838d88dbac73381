"""Lint, then one test run: unit and property tests, every notebook, the built site.

One pytest run, in two processes, so that its last line counts everything.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from scripts import assets

ROOT = Path(__file__).resolve().parent.parent
LINTERS = [
    ["ruff", "check", "--quiet", "."],
    ["ruff", "format", "--check", "--quiet", "."],
    ["mypy", "--no-error-summary"],
]
# In this order, file by file to whichever process is free: a browser keeps more than one core busy,
# so one process should be at pages while the other computes or waits. The first file builds the
# site. The long ones come early, so that neither process is left alone with one at the end.
TESTS = [
    "tests/site/test_explorables.py",
    "tests/core",
    "tests/site/test_runner.py",
    "tests/distributed",
    "tests/site/test_pages.py",
    "tests/ui",
    "tests/book",
    "book",
    "tests/site/test_no_scripts.py",
    "tests/site/test_jupyterlab.py",
    "tests/site/test_quiz.py",
    "tests",
]
PYTEST = [
    "-p",
    "tests.support.plugin",
    "--numprocesses=2",
    "--dist=loadfile",
    "--no-loadscope-reorder",
    "--nbval",
    "--nbval-current-env",
    "--nbval-cell-timeout=60",
    "--nbval-sanitize-with=tests/book/nbval_sanitize.cfg",
    "--durations=10",
]


def lint() -> int:
    """Exit code of the first linter that complains, or 0."""
    for command in LINTERS:
        print(" ".join(command[:2]), "...", flush=True)
        code = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode
        if code:
            return code
    return 0


def files() -> list[str]:
    """Every test file and notebook once, in the order of `TESTS`.

    Named one by one: of a folder and a file in it pytest keeps only the folder, in its own order.
    """
    found: dict[str, None] = {}
    for name in TESTS:
        place = ROOT / name
        pattern = "*.ipynb" if name == "book" else "test_*.py"
        for path in [place] if place.is_file() else sorted(place.rglob(pattern)):
            if ".ipynb_checkpoints" not in path.parts:
                found[path.relative_to(ROOT).as_posix()] = None
    return list(found)


def test(extra: list[str]) -> int:
    """Exit code of the test run."""
    try:
        assets.ensure("axe-core")
        assets.ensure("katex")
    except assets.AssetError as error:
        print(f"Hosted files are missing: {error}", file=sys.stderr)
        return 1
    for old in ROOT.glob(".coverage*"):
        old.unlink()
    command = [sys.executable, "-m", "pytest", *PYTEST, *extra, *files()]
    # Stored notebooks hold no widget views, so the run that compares them makes none.
    environment = dict(os.environ, CPCORE_STATIC="1", CPCORE_COVERAGE="1")
    environment["CPCORE_PROGRESS"] = "off"  # whatever the one who tests has solved
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return code or covered()


def covered() -> int:
    """Fail, and only then speak, if tests left too many lines of the core unread."""
    for step in ("combine", "report"):
        command = [sys.executable, "-m", "coverage", step]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stdout, done.stderr, sep="\n")
            return done.returncode
    return 0


def main() -> None:
    """Lint, and unless `--lint` is given, test; other arguments go to pytest."""
    parser = argparse.ArgumentParser(prog="python -m scripts.check", description=__doc__)
    parser.add_argument("--lint", action="store_true", help="only lint")
    args, extra = parser.parse_known_args()
    sys.exit(lint() or (0 if args.lint else test(extra)))


if __name__ == "__main__":
    main()
