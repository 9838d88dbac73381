"""How the API page shows our functions: annotations and docstrings as their source writes them."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import Any

from sphinx.application import Sphinx

ARRAY = "ndarray[tuple[Any, ...], dtype[Any]]"
FIELD = re.compile(r"(Shapes|Units|Raises|Source): (.*)")


def as_written(app: Sphinx, obj: Any, bound_method: bool) -> None:
    """Keep a function's annotations as its source writes them, for the API page.

    Evaluated, `ArrayLike` becomes a union of a dozen private numpy types.
    """
    function = inspect.unwrap(getattr(obj, "__func__", obj))
    if not inspect.isfunction(function):
        return
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, SyntaxError):
        return  # made by a decorator or by NamedTuple: no source to read
    if not isinstance(tree, ast.FunctionDef):
        return
    arguments = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
    for argument in arguments:
        if argument.annotation:
            function.__annotations__[argument.arg] = ast.unparse(argument.annotation)
    if tree.returns:
        function.__annotations__["return"] = ast.unparse(tree.returns)


def docstring_fields(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Show the parts of a docstring (`Shapes: ...` and so on) as a field list."""
    shown: list[str] = []
    inside = False  # a field goes on while its lines are indented
    for line in lines:
        field = FIELD.match(line)
        going_on = bool(field) or (inside and line.startswith(" "))
        if going_on != inside and line:
            shown.append("")
        inside = going_on
        shown.append(f":{field[1]}: {field[2]}" if field else line)
    lines[:] = shown


def short_types(
    app: Sphinx,
    what: str,
    name: str,
    obj: Any,
    options: Any,
    signature: str | None,
    return_annotation: str | None,
) -> tuple[str | None, str | None]:
    """Write our array alias where a class signature spells it out."""
    shown = [text and text.replace(ARRAY, "Array") for text in (signature, return_annotation)]
    return shown[0], shown[1]
