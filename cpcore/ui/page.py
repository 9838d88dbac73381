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
import types
from collections.abc import Callable
from typing import Any

from cpcore.ui.catalogue import catalogue
from cpcore.ui.explorable import Explorable
from cpcore.ui.page_errors import CELL, LIMIT, explain
from cpcore.ui.page_output import bundle, figures

# A loop that prints must not flood the page: what is printed leaves at once, until so many
# messages have left in a short time; then that many a second.
BURST, RATE = 200, 20
BOXES = 500  # outputs of one run: more would stall the page


class Keyboard(io.TextIOBase):
    """What `input` reads from: there is nobody to ask while a cell runs."""

    def readline(self, size: int | None = -1) -> str:  # type: ignore[override]
        """Say what to do instead."""
        raise OSError("this page's Python cannot ask for input: write the answer into the cell")


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
        self._room, self._boxes = LIMIT, BOXES
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
        self._open, self._room, self._boxes = "", LIMIT, BOXES
        out, err = Stream("stdout", self._write), Stream("stderr", self._write)
        sys.stdin = Keyboard()
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
            if self._opens("display"):
                data = bundle(value)
                data["text/plain"] = self._fitting(data["text/plain"])
                self._output("data", data=data)

    async def _value(self, source: str, name: str) -> Any:
        """Run the statements; the value of a last expression without a semicolon."""
        tree = ast.parse(source, name)
        last = tree.body[-1] if tree.body else None
        if not isinstance(last, ast.Expr) or _silenced(last, source):
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
        if not text or not self._opens(stream):
            return
        self._pieces.append(self._fitting(text))
        now = time.monotonic()
        self._free = min(BURST, self._free + RATE * (now - self._counted))
        self._counted = now
        if self._free >= 1 or self._room <= 0:
            self._free -= 1
            self._flush()

    def _opens(self, kind: str) -> bool:
        """Does the page still take an output of this kind? Text goes on in the open box."""
        if self._room <= 0 or self._boxes <= 0:
            return False
        if kind == "display" or kind != self._open:
            self._flush()
            self._open = kind
            self._boxes -= 1
            if not self._boxes:
                self._open = "stdout"
                self._pieces.append(f"... the page shows the first {BOXES - 1:,} outputs\n")
                self._flush()
        return self._boxes > 0

    def _fitting(self, text: str) -> str:
        """The part of a text that there is room for."""
        room, self._room = self._room, self._room - len(text)
        if self._room > 0:
            return text
        return f"{text[:room]}\n... the page shows the first {LIMIT:,} characters\n"

    def _flush(self) -> None:
        text, self._pieces = "".join(self._pieces), []
        if text:
            self._send(json.dumps({"kind": "stream", "name": self._open, "text": text}))

    def _output(self, kind: str, **parts: object) -> None:
        self._flush()
        self._send(json.dumps({"kind": kind, **parts}))


def _silenced(last: ast.Expr, source: str) -> bool:
    """Does a semicolon follow the last expression? One inside a comment does not count."""
    lines = source.encode().split(b"\n")[(last.end_lineno or 1) - 1 :]
    rest = lines[0][last.end_col_offset :]
    return rest.lstrip().startswith(b";")
