"""What a question of the bank is: its fields, their limits, and every fault of one entry.

Owns the check of one entry as read from a file, and of its numbers: each is computed in two ways,
neither of which is a typed number. Leaves out what concerns the bank as a whole (`bank`), and
whether links resolve (tests).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from cpcore.interview.expressions import evaluate, is_literal, way_of
from cpcore.interview.units import UNITS, show

LEVELS = ("warm-up", "core", "senior", "staff")
STEPS = ("state", "lengths", "remote", "ring", "masks", "bytes", "overlap", "sparse")
AXES = ("correctness", "structure", "estimate", "trade-off", "failure", "verification")
TEXTS = ("title", "prompt", "short", "spoken", "link")
FIELDS = {
    *TEXTS, "id", "level", "minutes", "hints", "answer", "wrong", "rubric", "follow_ups",
    "sources", "let", "numbers", "function",
}  # fmt: skip
OPTIONAL = {"let", "numbers", "function"}
PLACEHOLDER = re.compile(r"\{(\w+)(#?)\}")
# A number that claims something: it has a decimal point, a percent sign or a unit. "8B" names a
# model, and so does "Llama 3.1".
CLAIM = re.compile(
    r"(?<!Llama )(?<![\w.,:{-])\d[\d,]*(?:\.\d+|\s?(?:%|[kMGTP]i?B\b|(?:byte|bit)s?\b|m?s\b|"
    r"[kMGTP]?(?:FLOP|flop)|percent|[GMT]bit)|\sB\b)"
)
SAME = 1e-9  # two ways of a number agree to this relative difference: rounding of a few operations


def faults(entry: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with one entry, in words; an empty list means that it is valid."""
    name = entry.get("id", "an entry without id")
    missing = FIELDS - OPTIONAL - entry.keys()
    found = [f"no field {field}" for field in sorted(missing)]
    found += [f"unknown field {field}" for field in sorted(entry.keys() - FIELDS)]
    if not missing:
        found += [*_shape(entry), *_rubric(entry["rubric"]), *_numbers(entry), *_prose(entry)]
    return [f"{name}: {fault}" for fault in found]


def _shape(entry: Mapping[str, Any]) -> Iterator[str]:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", str(entry["id"])):
        yield "id: expected words joined by hyphens"
    if entry["level"] not in LEVELS:
        yield f"level: expected one of {', '.join(LEVELS)}, received {entry['level']!r}"
    if not (isinstance(entry["minutes"], int) and 2 <= entry["minutes"] <= 20):
        yield "minutes: expected 2 to 20"
    for field in TEXTS:
        if not isinstance(entry[field], str) or not entry[field].strip():
            yield f"{field}: expected text"
    if len(entry["hints"]) != 3:
        yield "hints: expected three, each giving away a little more"
    steps = [STEPS.index(part["step"]) for part in entry["answer"] if part["step"] in STEPS]
    if len(steps) != len(entry["answer"]) or steps != sorted(steps) or not steps:
        yield f"answer: expected parts in the order {', '.join(STEPS)}"
    if set(entry["wrong"]) != {"says", "why"}:
        yield "wrong: expected what is said, and why it is wrong"
    words = len(entry["spoken"].split())
    if not 60 <= words <= 170:
        yield f"spoken: expected 60 to 170 words, a minute of speech, received {words}"
    if len(entry["short"].split()) > 45:
        yield "short: expected at most 45 words"
    for field in ("follow_ups", "sources"):
        if not isinstance(entry[field], list):
            yield f"{field}: expected a list"
    if not entry["follow_ups"]:
        yield "follow_ups: expected at least one"


def _rubric(rubric: Mapping[str, Any]) -> Iterator[str]:
    if tuple(rubric) != AXES:
        yield f"rubric: expected the axes {', '.join(AXES)}"
    elif len(rubric["correctness"]) != 4:
        yield "rubric: expected four texts for correctness, what 0, 1, 2 and 3 look like"


def _numbers(entry: Mapping[str, Any]) -> Iterator[str]:
    try:
        given = bindings(entry)
    except (ValueError, TypeError, AttributeError) as error:
        yield f"let: {error}"
        return
    for name, number in entry.get("numbers", {}).items():
        if "published" in number:
            yield from (f"number {name}: {fault}" for fault in _published(number, entry))
            continue
        try:
            yield from (f"number {name}: {fault}" for fault in _number(number, given))
        except (ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
            yield f"number {name}: {error}"


def _published(number: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[str]:
    """A measurement of others has no second way; it has a source, and a test finds it in a cell."""
    if number.keys() - {"digits"} != {"published", "source", "unit"}:
        yield "expected the fields published, source, unit and perhaps digits"
    elif number["source"] not in entry["sources"] or number["unit"] not in UNITS:
        yield "expected a source of this question and a known unit"


def _number(number: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    if not {"is", "check", "unit"} <= number.keys() <= {"is", "check", "unit", "digits"}:
        yield "expected the fields is, check, unit and perhaps digits"
        return
    if number["unit"] not in UNITS:
        yield f"unknown unit {number['unit']!r}"
        return
    first, second = str(number["is"]), str(number["check"])
    ways = way_of(first), way_of(second)
    if is_literal(first):
        yield f"a bare literal: {first}"
    elif ways[0] == "closed":
        yield "is: expected the planner, a count or a published size, received plain arithmetic"
    elif ways[0] == ways[1]:
        yield f"both ways are of the kind {ways[0]}"
    one, two = float(evaluate(first, given)), float(evaluate(second, given))
    scale = 1e-6 if "overflow_score" in first + second else SAME  # found by halving an interval
    if not (math.isfinite(one) and math.isfinite(two)):
        yield f"expected finite numbers, received {one!r} and {two!r}"
    elif not math.isclose(one, two, rel_tol=scale, abs_tol=1e-12):
        yield f"the two ways differ: {one!r} and {two!r}"


def bindings(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry's own names: sizes, presets, and arithmetic on what stands above them.

    Raises: ValueError for an expression that computes more than that.
    """
    given: dict[str, Any] = {}
    for name, text in entry.get("let", {}).items():
        if way_of(str(text)) not in ("closed", "preset"):
            raise ValueError(f"{name}: expected sizes and presets, received {text!r}")
        given[name] = evaluate(str(text), given)
    return given


def filled(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with every placeholder replaced by its number; `let` and `numbers` are left out.

    Raises: KeyError for a placeholder without a number.
    """
    given = bindings(entry)
    numbers = entry.get("numbers", {})

    def number(match: re.Match[str]) -> str:
        spec = numbers[match[1]]
        text = spec.get("is", f"{spec.get('published')}")
        value = float(evaluate(str(text), given))
        if "published" in spec:
            value *= UNITS[spec["unit"]].factor  # written as it was printed, in its unit
        return show(value, spec["unit"], spec.get("digits", 0), bare=bool(match[2]))

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return PLACEHOLDER.sub(number, " ".join(value.split()))
        if isinstance(value, Mapping):
            return {key: fill(item) for key, item in value.items()}
        return [fill(item) for item in value] if isinstance(value, list) else value

    return {key: fill(entry[key]) for key in entry if key not in ("let", "numbers")}


def texts(value: Any) -> Iterator[str]:
    """Every text inside a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from texts(item)


def _prose(entry: Mapping[str, Any]) -> Iterator[str]:
    prose = {key: entry[key] for key in entry if key not in ("let", "numbers", "link", "id")}
    used = set()
    for text in texts(prose):
        used |= {match[1] for match in PLACEHOLDER.finditer(text)}
        for claim in CLAIM.finditer(PLACEHOLDER.sub(" ", text)):
            yield f"a number typed into the text: {claim[0]!r}"
    numbers = entry.get("numbers", {}).keys()
    yield from (f"no number for {{{name}}}" for name in sorted(used - numbers))
    yield from (f"number {name} is never used" for name in sorted(numbers - used))
