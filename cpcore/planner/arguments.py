"""Checks of the planner's arguments: each returns what it checked, as a plain Python number.

Owns what is said of a wrong argument. A numpy integer is taken and converted: in its own 32 bits
the pairs of a long sequence would overflow. Leaves out models and machines (`shapes`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Literal

from cpcore.checks import expected, whole_number

Keep = Literal["everything", "boundaries"]


def positive(argument: str, value: object) -> float:
    """`value` as a finite float above 0; anything else is refused."""
    number = _real(value)
    if not 0 < number < math.inf:
        raise expected(argument, "a finite number above 0", _shown(value))
    return number


def not_negative(argument: str, value: object) -> float:
    """`value` as a finite float of at least 0; anything else is refused."""
    number = _real(value)
    if not 0 <= number < math.inf:
        raise expected(argument, "a finite number of at least 0", _shown(value))
    return number


def share(argument: str, value: object) -> float:
    """`value` as a part of a whole: above 0, at most 1."""
    part = positive(argument, value)
    if part > 1:
        raise expected(argument, "at most 1", _shown(value))
    return part


def one_of(argument: str, value: object, names: Iterable[str]) -> str:
    """`value` if it is one of the names; anything else is refused."""
    if not isinstance(value, str) or value not in names:
        raise expected(argument, f"one of {', '.join(names)}", repr(value))
    return value


def grouped_heads(q_heads: int, kv_heads: int) -> int:
    """Query heads per key/value head, Hq / Hkv.

    Raises: ValueError unless both are at least 1 and kv_heads divides q_heads.
    """
    queries, keys = whole_number("q_heads", q_heads, 1), whole_number("kv_heads", kv_heads, 1)
    if queries % keys:
        raise expected("kv_heads", f"a divisor of q_heads = {queries}", keys)
    return queries // keys


def tokens_and_ranks(seq_len: int, cp_size: int) -> tuple[int, int]:
    """S and R, at least one token for each rank."""
    ranks, every = whole_number("cp_size", cp_size, 1), whole_number("seq_len", seq_len, 1)
    if ranks > every:
        raise expected("cp_size", f"at most {every} ranks, one token each", ranks)
    return every, ranks


def keep_everything(keep: object) -> bool:
    """Whether `keep` says "everything"; what says neither that nor "boundaries" is refused."""
    if not isinstance(keep, str) or keep not in ("everything", "boundaries"):
        raise expected("keep", "'everything' or 'boundaries'", repr(keep))
    return keep == "everything"


def _real(value: object) -> float:
    """`value` as a float: NaN for what is no number, infinity for an int that no float holds."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _shown(value: object) -> str:
    """What an error says of `value`: the digits of an endless integer help nobody."""
    return "a larger one" if isinstance(value, int) and _real(value) == math.inf else repr(value)
