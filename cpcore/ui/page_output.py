"""How the page shows a value: the representations that Jupyter would store, text like IPython's."""

from __future__ import annotations

import base64
import inspect
import io
import sys
import types
from itertools import islice
from typing import Any

WIDTH = 79  # columns after which IPython breaks a container
MOST = 1000  # items of a container that IPython shows
METHODS = {
    "text/html": "_repr_html_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
}


def bundle(value: object) -> dict[str, str]:
    """Representations of a value by MIME type; the text is always among them."""
    found: dict[str, Any] = {"text/plain": _readable(value)}
    if isinstance(value, type):
        return found
    whole = getattr(value, "_repr_mimebundle_", None)
    if whole is not None:
        data = whole(include=None, exclude=None)
        data = data[0] if isinstance(data, tuple) else data
        found |= data if isinstance(data, dict) else {}
    for mime, method in METHODS.items():
        make = None if mime in found else getattr(value, method, None)
        shown = make() if make is not None else None
        if shown is not None:
            found[mime] = shown
    # An object that answers to every name, as a mock does, has no picture.
    good = {mime: shown for mime, shown in found.items() if isinstance(shown, str | bytes)}
    return {mime: _text(shown) for mime, shown in good.items()}


def _readable(value: object) -> str:
    """The text of a value, also of a list that holds itself."""
    try:
        return pretty(value)
    except RecursionError:
        return repr(value)


def figures() -> list[dict[str, str]]:
    """The open matplotlib figures, which are closed; nothing if no cell has loaded it."""
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is None:
        return []
    found = []
    for number in plt.get_fignums():
        figure, picture = plt.figure(number), io.BytesIO()
        figure.savefig(picture, format="png", bbox_inches="tight")
        found.append({"text/plain": repr(figure), "image/png": _text(picture.getvalue())})
    plt.close("all")
    return found


def pretty(value: object, indent: int = 0, column: int = 0, after: int = 0) -> str:
    """The text of a value as IPython prints it: `repr`, and a long container one item a line.

    ``column`` is where the text starts, ``indent`` where its next lines do, ``after`` how much
    follows on its last line.
    """
    brackets = _brackets(value)
    if brackets is None:
        return _plain(value).replace("\n", "\n" + " " * indent)
    flat = _flat(value, brackets)
    if column + len(flat) + after <= WIDTH and "\n" not in flat:
        return flat
    start, end = brackets
    inner = indent + len(start)
    items: Any = value
    lines = [text + "," for text in _items(items, inner)]
    if len(items) > MOST:
        lines.append("...")
    elif not (isinstance(value, tuple) and len(lines) == 1):
        lines[-1] = lines[-1][:-1]
    return start + ("\n" + " " * inner).join(lines) + end


def _brackets(value: object) -> tuple[str, str] | None:
    """What encloses the items of a plain container that is not empty."""
    shows: Any = type(value).__repr__  # a subclass with its own text is no plain container
    kinds: dict[Any, tuple[str, str]] = {
        list: ("[", "]"),
        tuple: ("(", ")"),
        dict: ("{", "}"),
        set: ("{", "}"),
        frozenset: ("frozenset({", "})"),
    }
    for kind, brackets in kinds.items():
        if isinstance(value, kind) and value and shows is kind.__repr__:
            return brackets
    return None


def _ordered(value: Any) -> list[object]:
    """The items of a sequence or set; a set in order, if it has one."""
    if not isinstance(value, set | frozenset):
        return list(value)
    try:
        return sorted(value)
    except TypeError:
        return list(value)


def _flat(value: Any, brackets: tuple[str, str]) -> str:
    """The container on one line; anything too long for a line if it cannot fit."""
    if len(value) > WIDTH:
        return " " * (WIDTH + 1)
    if isinstance(value, dict):
        items = [f"{_line(key)}: {_line(item)}" for key, item in value.items()]
    else:
        items = [_line(item) for item in _ordered(value)]
    comma = "," if isinstance(value, tuple) and len(items) == 1 else ""
    return brackets[0] + ", ".join(items) + comma + brackets[1]


def _line(value: object) -> str:
    brackets = _brackets(value)
    return _plain(value) if brackets is None else _flat(value, brackets)


def _items(value: Any, indent: int) -> list[str]:
    """The items of a broken container, each from its own line on."""
    if not isinstance(value, dict):
        return [pretty(item, indent, indent, 1) for item in _ordered(value)[:MOST]]
    texts = []
    for key, item in islice(value.items(), MOST):
        head = pretty(key, indent, indent) + ": "
        texts.append(head + pretty(item, indent, indent + len(head), 1))
    return texts


def _plain(value: object) -> str:
    """The text of anything that is not a container."""
    if isinstance(value, type) and type(value).__repr__ is type.__repr__:
        module = value.__module__
        return value.__qualname__ if module == "builtins" else f"{module}.{value.__qualname__}"
    if isinstance(value, types.FunctionType):
        return f"<function {value.__module__}.{value.__qualname__}{inspect.signature(value)}>"
    return repr(value)


def _text(shown: object) -> str:
    """A representation as text; a picture's bytes in base64."""
    return base64.b64encode(shown).decode() if isinstance(shown, bytes) else str(shown)
