"""What the commands share: the time limit and JSON options, tables, progress, and the report.

Under torchrun every rank runs the command; only rank 0 speaks and writes.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from cpcore.checks import expected
from cpcore.distributed import torchrun
from cpcore.distributed.launch import RankError
from cpcore.distributed.messages import PeerError


class Formatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Help that keeps the lines of a description and names every default."""


def parser(command: str, description: str) -> argparse.ArgumentParser:
    """A parser with the options that every command has."""
    made = argparse.ArgumentParser(
        prog=f"python -m cpcore {command}", description=description, formatter_class=Formatter
    )
    made.add_argument("--json", metavar="FILE", type=Path, help="write the whole report here")
    made.add_argument(
        "--time-limit", metavar="SECONDS", type=float, default=120.0, help="for each start of ranks"
    )
    made.add_argument("--quiet", action="store_true", help="no progress, only the table")
    return made


def speaks() -> bool:
    """Is this the process that prints: the only one, or rank 0 of several?"""
    return not torchrun.present() or torchrun.rank() == 0


def progress(quiet: bool) -> Callable[[str], None]:
    """A function that says a line on the error stream, at once."""

    def say(line: str) -> None:
        if not quiet and speaks():
            print(line, file=sys.stderr, flush=True)

    return say


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as they need to be, the first on the left and numbers on the right."""
    lines = [[*head], *([_cell(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            [
                line[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)),
            ]
        ).rstrip()
        for line in lines
    )


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.1e}" if value and abs(value) < 0.01 else f"{value:.4g}"
    return str(value)


def run(argv: list[str], made: argparse.ArgumentParser, command: Callable[..., Any]) -> int:
    """Parse, run, write the report; the exit code: 0 agreed, 1 disagreed, 2 could not run.

    `command` takes the parsed options and returns (report, text); the report's "agrees" decides.
    """
    options = made.parse_args(argv)
    try:
        if options.json is not None and not options.json.absolute().parent.is_dir():
            raise expected("json", "a file in a folder that exists", options.json)
        report, text = command(options)
        if speaks():
            if options.json is not None:
                write(options.json, report)
            print(text, flush=True)
    except (ValueError, RankError, PeerError, OSError) as error:
        notes = getattr(error, "__notes__", [])  # under torchrun: which rank, and where
        if speaks() or notes:
            print(": ".join([made.prog, *notes, str(error)]), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{made.prog}: interrupted", file=sys.stderr)
        return 130  # as the shell reports it
    return 0 if report["agrees"] else 1


def write(path: Path, report: Any) -> None:
    """The report as JSON; what is not finite becomes text, because JSON has no such number."""
    path.write_text(json.dumps(plain(report), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def plain(thing: Any) -> Any:
    """Arrays as lists, NamedTuples as objects, infinities and NaN as text."""
    if hasattr(thing, "_asdict"):
        return plain(thing._asdict())
    if isinstance(thing, dict):
        return {str(key): plain(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [plain(value) for value in thing]
    if hasattr(thing, "tolist"):
        return plain(thing.tolist())
    if isinstance(thing, float) and not math.isfinite(thing):
        return str(thing)
    return thing
