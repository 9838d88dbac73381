"""A small calculator for the numbers of the bank: arithmetic over named functions, nothing else.

Owns the walk over an expression's syntax tree, and which way an expression takes: closed forms of
`planner`, a count of events or a run of the core (`counting`, `numerics`), arithmetic on published
sizes, or on plain numbers. Nothing is compiled or executed: what the walk does not know is refused.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, Literal

from cpcore import planner
from cpcore.checks import expected
from cpcore.interview.counting import COUNTED
from cpcore.interview.numerics import RUNS

Way = Literal["planner", "counted", "preset", "closed"]
PLANNER: dict[str, Any] = {name: getattr(planner, name) for name in planner.__all__}
CORE: dict[str, Any] = COUNTED | RUNS
PLAIN: dict[str, Any] = {
    "ceil": math.ceil, "exp": math.exp, "log": math.log, "max": max, "min": min, "range": range,
    "sqrt": math.sqrt, "sum": sum,
}  # fmt: skip
PRESETS = {"hardware", "model_shape"}  # published data; looking it up is no way of computing
# What plain arithmetic may read of a preset: the published sizes, not what follows from them.
PUBLISHED = {
    "head_dim", "hidden", "kv_heads", "layers", "memory_bytes", "memory_bytes_per_s", "mlp_hidden",
    "network_bytes_per_s", "node_bytes_per_s", "node_size", "peak_flops_per_s", "q_heads",
    "vocabulary",
}  # fmt: skip
LARGEST_POWER = 64
LARGEST_BITS = 4096  # of an integer power
LONGEST = 4096  # items of a list or a loop
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def evaluate(text: str, given: Mapping[str, Any] | None = None) -> Any:
    """The value of an expression; `given` holds names of its own.

    Raises: ValueError for syntax that the calculator does not know, or names that are not there.

    >>> evaluate("ceil(F / Bw)", {"F": 989e12, "Bw": 450e9})
    2198
    """
    try:
        return _value(_parsed(text), {**PLANNER, **CORE, **PLAIN, **(given or {})})
    except (ArithmeticError, RecursionError, MemoryError) as error:
        raise expected("expression", "a finite value", f"{text[:80]!r}, {error}") from None


def way_of(text: str) -> Way:
    """Which way an expression takes, by the functions that it names.

    Raises: ValueError for a mixture of ways, or plain arithmetic on what the planner derived.
    """
    tree = _parsed(text)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    closed_forms, counts = names & (PLANNER.keys() - PRESETS), names & CORE.keys()
    if closed_forms and counts:
        raise expected("expression", "one way of computing", f"{text!r}, which mixes two")
    if closed_forms or (not counts and read - PUBLISHED):
        return "planner"
    return "counted" if counts else "preset" if read else "closed"


def is_literal(text: str) -> bool:
    """Whether an expression names nothing: a number that somebody typed."""
    return not any(isinstance(node, ast.Name) for node in ast.walk(_parsed(text)))


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise expected("expression", "an expression", repr(text[:80])) from None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return node.value
        case ast.Name() if node.id in names:
            return names[node.id]
        case ast.Name():
            raise expected("expression", "names of the calculator", repr(node.id))
        case ast.BinOp():
            return _operation(node, names)
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, names)
        case ast.Attribute() if not node.attr.startswith("_"):
            owner = _value(node.value, names)
            if not (is_dataclass(owner) or hasattr(owner, "_fields")):  # a string formats anything
                raise expected("expression", "a field of a preset or a row", ast.unparse(node))
            return getattr(owner, node.attr)
        case ast.Slice(step=None):
            ends = (node.lower, node.upper)
            return slice(*(None if end is None else _value(end, names) for end in ends))
        case ast.Subscript():
            return _value(node.value, names)[_value(node.slice, names)]
        case ast.List() | ast.Tuple():
            return [_value(item, names) for item in node.elts]
        case ast.GeneratorExp() | ast.ListComp():
            return _each(node, names)
        case ast.Call():
            return _call(node, names)
    raise expected("expression", "arithmetic and calls", ast.unparse(node))


def _operation(node: ast.BinOp, names: Mapping[str, Any]) -> Any:
    left, right = _value(node.left, names), _value(node.right, names)
    if isinstance(node.op, ast.Pow) and abs(right) <= LARGEST_POWER:
        if isinstance(left, int) and left.bit_length() * right > LARGEST_BITS:
            raise expected("expression", "a power of fewer digits", ast.unparse(node))
        return left**right
    if type(node.op) not in OPERATORS or isinstance(left, str) or isinstance(right, str):
        raise expected("expression", "+ - * / // % and small powers", ast.unparse(node))
    for items, times in ((left, right), (right, left)):
        if isinstance(items, list) and isinstance(times, int) and len(items) * times > LONGEST:
            raise expected("expression", f"at most {LONGEST} items", ast.unparse(node))
    return OPERATORS[type(node.op)](left, right)


def _each(node: ast.GeneratorExp | ast.ListComp, names: Mapping[str, Any]) -> list[Any]:
    loop, *more = node.generators
    nested = any(isinstance(part, ast.GeneratorExp | ast.ListComp) for part in ast.walk(node.elt))
    if more or nested or loop.ifs or loop.is_async or not isinstance(loop.target, ast.Name):
        raise expected("expression", "one plain loop", ast.unparse(node))
    items = _value(loop.iter, names)
    if len(items) > LONGEST:
        raise expected("expression", f"a loop of at most {LONGEST} steps", ast.unparse(node))
    return [_value(node.elt, {**names, loop.target.id: item}) for item in items]


def _call(node: ast.Call, names: Mapping[str, Any]) -> Any:
    """A call of a name, or of a method of a preset."""
    if not isinstance(node.func, ast.Name | ast.Attribute):
        raise expected("expression", "calls by name", ast.unparse(node))
    options = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise expected("expression", "arguments by name", ast.unparse(node))
        options[keyword.arg] = _value(keyword.value, names)
    return _value(node.func, names)(*(_value(item, names) for item in node.args), **options)
