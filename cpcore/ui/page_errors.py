"""How an error of a reader's cell reads: cut to the frames of cells and to what a page can show."""

from __future__ import annotations

import traceback

CELL = "<cell "  # file names of cells start like this
LIMIT = 200_000  # characters of one run: more would stall the page


def explain(error: BaseException) -> str:
    """The traceback without frames that are not the reader's, and what a missing module means."""
    shown = traceback.TracebackException.from_exception(error)
    _keep_cells(shown)
    text = "".join(shown.format()).rstrip("\n")
    if isinstance(error, ModuleNotFoundError):
        text = "\n".join(line for line in text.split("\n") if "pyodide" not in line.lower())
        text += "\nThis page carries the standard library, numpy and cpcore."
    if len(text) > LIMIT:  # what failed stands at the end, where it began at the start
        text = f"{text[: LIMIT // 2]}\n... left out ...\n{text[-LIMIT // 2 :]}"
    return text


def _keep_cells(shown: traceback.TracebackException | None) -> None:
    """Keep the frames of cells, in this error and in those that led to it or are part of it."""
    if shown is None:
        return
    frames = [frame for frame in shown.stack if frame.filename.startswith(CELL)]
    # Without a frame there is no "Traceback" line: a syntax error names its place itself.
    shown.stack = traceback.StackSummary.from_list(frames) if frames else None  # type: ignore[assignment]
    for other in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        _keep_cells(other)
