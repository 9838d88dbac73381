"""Units: how a number of the bank is written, and how a reader's "number unit" is read.

Owns the table of units, the way a value is shown and the parsing of an answer. Leaves out what a
wrong answer might have meant (`judge`). Values are in base units: bytes, seconds, flops, shares.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cpcore.checks import expected

POWERS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
COUNTS = (
    "tokens", "pairs", "elements", "ranks", "hops", "messages", "heads", "layers", "labels",
    "parameters", "devices", "steps", "calls", "copies", "summands",
)  # fmt: skip


class Unit(NamedTuple):
    """A quantity and how many base units one of these is."""

    quantity: str
    factor: float


def _units() -> dict[str, Unit]:
    table = {"bytes": Unit("data", 1), "x": Unit("ratio", 1), "%": Unit("share", 0.01)}
    for power, factor in (POWERS | BINARY).items():
        table[power + "B"] = Unit("data", factor)
        table[power + "B/s"] = Unit("data a second", factor)
    for power, factor in POWERS.items():
        table[power + "bit"] = Unit("data", factor / 8)
        table[power + "bit/s"] = Unit("data a second", factor / 8)
        table[power + "FLOP"] = Unit("work", factor)
        table[power + "FLOP/s"] = Unit("work a second", factor)
    for name, factor in {"s": 1, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "min": 60, "h": 3600}.items():
        table[name] = Unit("time", factor)
    for name in COUNTS:
        table[name] = Unit(name, 1)
    return table


UNITS = _units()
# Other spellings that readers use. Case matters only where it must: Mb is megabit, MB megabyte.
SPELLINGS = {
    "byte": "bytes", "b": "bit", "bits": "bit", "KB": "kB", "kb": "kbit", "Mb": "Mbit",
    "Gb": "Gbit", "Tb": "Tbit", "Gb/s": "Gbit/s", "Gbps": "Gbit/s", "GBps": "GB/s", "KiB": "KiB",
    "percent": "%", "times": "x", "×": "x", "seconds": "s", "second": "s", "sec": "s",
    "minutes": "min", "hours": "h", "μs": "µs", "flop": "FLOP", "flops": "FLOP",
    "TFLOPS": "TFLOP/s", "TFLOPs": "TFLOP", "PFLOPs": "PFLOP",
}  # fmt: skip
NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?|[-+]?\.\d+"
ANSWER = re.compile(rf"^(?P<number>{NUMBER})\s*(?P<rest>.*)$", re.IGNORECASE)


class Answer(NamedTuple):
    """What a reader wrote: the value in base units and the unit's name."""

    value: float
    unit: str


def read(text: str) -> Answer:
    """A reader's answer: a number with a point and optional commas, then a unit.

    >>> read("64 MiB"), read("4.4k tokens")
    (Answer(value=67108864.0, unit='MiB'), Answer(value=4400.0, unit='tokens'))

    Raises: ValueError that says what is missing.
    """
    found = ANSWER.match(" ".join(text.split()))
    if not found:
        raise expected("answer", "a number and a unit, such as 64 MiB", repr(text))
    number, rest = float(found["number"].replace(",", "")), found["rest"].strip()
    if not rest:
        raise expected("answer", "a unit after the number, such as MiB or tokens", repr(text))
    if re.match(r",\d", rest):
        raise expected("answer", "a point before decimals, commas between thousands", repr(text))
    unit = _unit(rest)
    if unit:
        return Answer(number * UNITS[unit].factor, unit)
    power, unit = POWERS.get(rest[0].replace("K", "k"), 0), _unit(rest[1:].strip())
    if power and unit in COUNTS:
        return Answer(number * power, str(unit))
    raise expected("answer", "a unit such as MiB, GB/s, ms, %, x or tokens", repr(rest))


def _unit(word: str) -> str | None:
    """The unit that a word means; singular counts are counts."""
    word = SPELLINGS.get(word, word)
    if word in UNITS:
        return word
    return word.lower() if word.lower() in COUNTS else word + "s" if word + "s" in COUNTS else None


def show(value: float, unit: str, digits: int = 0, *, bare: bool = False) -> str:
    """A value in its unit, with commas and `digits` decimals; `bare` leaves the unit out.

    >>> show(2**26, "MiB"), show(0.5714, "%", 1), show(4396, "tokens", bare=True)
    ('64 MiB', '57.1 %', '4,396')

    Raises: ValueError for a unit that is not in the table.
    """
    if unit not in UNITS:
        raise expected("unit", "a unit of the table", repr(unit))
    number = f"{value / UNITS[unit].factor:,.{digits}f}"
    return number if bare else f"{number} {unit}"
