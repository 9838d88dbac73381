"""Python in the built page: runs a reader's cells as Jupyter does, draws explorables live.

Owns the namespace of the cells, what they print and show, and how an error reads. Leaves out
everything of the browser: the page's worker hands in one function, and gets JSON.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import json
import linecache
import os
import sys
import time
import traceback
import types
from collections.abc import Callable
from typing import Any

from cpcore.ui.catalogue import catalogue
from cpcore.ui.explorable import Explorable
from cpcore.ui.page_output import bundle, figures

CELL = "<cell "  # file names of cells start like this
# A loop that prints must not flood the page: what is printed leaves at once, until so many
# messages have left in a short time; then that many a second.
BURST, RATE = 200, 20
LIMIT = 200_000  # characters of one run: more would stall the page


class Stream(io.TextIOBase):
    """What a cell prints to one of its two streams."""

    def __init__(self, name: str, write: Callable[[str, str], None]) -> None:
        self._name, self._write = name, write

    def writable(self) -> bool:
        """True, as for every stream that takes text."""
        return True

    def write(self, text: str) -> int:
        """Hand the text on; returns its length, as every stream does."""
        self._write(self._name, text)
        return len(text)


class Session:
    """One run of a notebook: cells share a namespace, outputs leave in the order they appear."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send  # takes one output as JSON
        self._pieces: list[str] = []
        self._open = ""  # the stream that the pieces belong to
        self._free, self._counted = float(BURST), time.monotonic()
        self._room = LIMIT
        self._shown: dict[str, Explorable] = {}
        self._space: dict[str, Any] = {}
        os.environ.setdefault("MPLBACKEND", "agg")
        self.fresh()

    def fresh(self) -> None:
        """Forget every name that cells have defined."""
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main  # where pickle looks up a reader's classes
        self._space = main.__dict__
        self._space["display"] = self.display

    async def run(self, number: int, source: str) -> bool:
        """Run one cell; True if it ended without an error. Outputs go to `send`."""
        name = f"{CELL}{number}>"
        lines = [line + "\n" for line in source.split("\n")]
        linecache.cache[name] = (len(source), None, lines, name)
        self._room = LIMIT
        out, err = Stream("stdout", self._write), Stream("stderr", self._write)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                value = await self._value(source, name)
                if value is not None:
                    self.display(value)
                for figure in figures():
                    self._output("data", data=figure)
            except BaseException as error:
                self._output("error", text=explain(error), name=type(error).__name__)
                return False
            finally:
                self._flush()
        return True

    def draw(self, name: str, values: str) -> str:
        """Lines of an explorable's picture as JSON, for control values as JSON."""
        entry = self._shown.get(name) or catalogue[name]
        return json.dumps(entry.lines(**json.loads(values)))

    def display(self, *values: object) -> None:
        """Show values as the result of a cell would be shown."""
        for value in values:
            if isinstance(value, Explorable):
                self._shown[value.name] = value
            self._output("data", data=bundle(value))

    async def _value(self, source: str, name: str) -> Any:
        """Run the statements; the value of a last expression without a semicolon."""
        tree = ast.parse(source, name)
        last = tree.body[-1] if tree.body else None
        if not isinstance(last, ast.Expr) or source.rstrip().endswith(";"):
            return await self._evaluate(tree, name, "exec")
        tree.body.pop()
        await self._evaluate(tree, name, "exec")
        return await self._evaluate(ast.Expression(last.value), name, "eval")

    async def _evaluate(self, tree: ast.Module | ast.Expression, name: str, mode: str) -> Any:
        # Not with this module's own `from __future__`, and with `await` as in Jupyter.
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile(tree, name, mode, flags=flags, dont_inherit=True)
        value = eval(code, self._space)
        return await value if code.co_flags & inspect.CO_COROUTINE else value

    def _write(self, stream: str, text: str) -> None:
        if stream != self._open:
            self._flush()
            self._open = stream
        if self._room <= 0 or not text:
            return
        self._pieces.append(text[: self._room])
        self._room -= len(text)
        if self._room <= 0:
            self._pieces.append(f"\n... the page shows the first {LIMIT:,} characters\n")
        now = time.monotonic()
        self._free = min(BURST, self._free + RATE * (now - self._counted))
        self._counted = now
        if self._free >= 1:
            self._free -= 1
            self._flush()

    def _flush(self) -> None:
        text, self._pieces = "".join(self._pieces), []
        if text:
            self._send(json.dumps({"kind": "stream", "name": self._open, "text": text}))

    def _output(self, kind: str, **parts: object) -> None:
        self._flush()
        self._send(json.dumps({"kind": kind, **parts}))


def explain(error: BaseException) -> str:
    """The traceback without frames that are not the reader's, and what a missing module means."""
    shown = traceback.TracebackException.from_exception(error)
    _keep_cells(shown)
    text = "".join(shown.format()).rstrip("\n")
    if isinstance(error, ModuleNotFoundError):
        text = "\n".join(line for line in text.split("\n") if "pyodide" not in line.lower())
        text += "\nThis page carries the standard library, numpy and cpcore."
    return text


def _keep_cells(shown: traceback.TracebackException | None) -> None:
    """Keep the frames of cells, in this error and in those that led to it."""
    if shown is None:
        return
    frames = [frame for frame in shown.stack if frame.filename.startswith(CELL)]
    # Without a frame there is no "Traceback" line: a syntax error names its place itself.
    shown.stack = traceback.StackSummary.from_list(frames) if frames else None  # type: ignore[assignment]
    _keep_cells(shown.__cause__)
    _keep_cells(shown.__context__)
