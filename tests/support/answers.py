"""Wrong answers made by machine: every small change of a solution, one at a time."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
COMPARISONS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
NAMES = {"maximum": "minimum", "max": "min", "min": "max", "logaddexp": "maximum"}


def mutants(source: str, function: str) -> Iterator[tuple[str, str]]:
    """What was changed, and the changed source. Only the function's own file is touched."""
    tree = ast.parse(source)
    for number, node in enumerate(ast.walk(tree)):
        for what, changed in _changes(node):
            other = copy.deepcopy(tree)
            target = next(each for i, each in enumerate(ast.walk(other)) if i == number)
            changed(target)
            line = source.split("\n")[getattr(node, "lineno", 1) - 1].strip()
            yield f"{what} in: {line}", ast.unparse(ast.fix_missing_locations(other))


def _changes(node: ast.AST) -> Iterator[tuple[str, Any]]:
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in OPERATORS:
        new = OPERATORS[type(node.op)]
        yield (
            f"{type(node.op).__name__} to {new.__name__}",
            lambda target: setattr(target, "op", new()),
        )
    if isinstance(node, ast.Compare):
        for new in COMPARISONS.get(type(node.ops[0]), ()):
            yield (
                f"{type(node.ops[0]).__name__} to {new.__name__}",
                lambda target, new=new: target.ops.__setitem__(0, new()),
            )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield "dropped sign", lambda target: setattr(target, "op", ast.UAdd())
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield f"{node.value} plus 1", lambda target: setattr(target, "value", target.value + 1)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield f"not {node.value}", lambda target: setattr(target, "value", not target.value)
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        new_name = NAMES[node.attr]
        yield f"{node.attr} to {new_name}", lambda target: setattr(target, "attr", new_name)
    yield from _dropped(node)


def _dropped(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """Each statement of a body left out; documentation and imports are no statements here."""
    for field in ("body", "orelse"):
        body = getattr(node, field, None)
        if isinstance(node, ast.Module) or not isinstance(body, list):
            continue
        for i, statement in enumerate(body):
            text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not text and not isinstance(statement, ast.FunctionDef | ast.Pass | ast.Import):
                yield (
                    f"dropped line {statement.lineno}",
                    lambda target, i=i, field=field: getattr(target, field).__setitem__(
                        i, ast.Pass()
                    ),
                )
