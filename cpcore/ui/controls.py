"""The three kinds of control an explorable may have, each with a stated finite grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Choice:
    """One of a few named options; the first is the default unless ``initial`` names another."""

    name: str
    label: str
    options: tuple[tuple[str, str], ...]  # (value, text shown)
    initial: str = ""

    @property
    def values(self) -> tuple[str, ...]:
        """Every value, in the order shown."""
        return tuple(value for value, _ in self.options)

    @property
    def default(self) -> str:
        """The value that Reset restores."""
        return self.initial or self.options[0][0]

    def spec(self) -> dict[str, Any]:
        """What the page script needs to build the control."""
        return _spec(self, "choice") | {"options": [list(pair) for pair in self.options]}


@dataclass(frozen=True)
class IntRange:
    """A whole number from ``start`` to ``stop``, both included.

    ``live`` names wider ends, for where Python draws; without it there are none.
    """

    name: str
    label: str
    start: int
    stop: int
    default: int
    live: tuple[int, int] | None = None

    @property
    def values(self) -> tuple[int, ...]:
        """Every value, rising."""
        return tuple(range(self.start, self.stop + 1))

    def spec(self) -> dict[str, Any]:
        """What the page script needs to build the control."""
        ends: dict[str, Any] = {"min": self.start, "max": self.stop}
        return _spec(self, "range") | ends | ({"live": list(self.live)} if self.live else {})


@dataclass(frozen=True)
class Step:
    """A play control: Back, Step and Play move a cursor from 0 to ``last``."""

    name: str
    label: str
    last: int

    @property
    def values(self) -> tuple[int, ...]:
        """Every cursor position."""
        return tuple(range(self.last + 1))

    @property
    def default(self) -> int:
        """The cursor that Reset restores."""
        return 0

    def spec(self) -> dict[str, Any]:
        """What the page script needs to build the control."""
        return _spec(self, "step") | {"max": self.last}


Control = Choice | IntRange | Step


def check(control: Control, value: object) -> None:
    """Refuse a value outside the control's stated grid, or its wider live ends.

    Raises: ValueError naming the control, what it accepts and what was received.
    """
    known = isinstance(value, str) if isinstance(control, Choice) else type(value) is int
    values: tuple[Any, ...] = control.values
    if isinstance(control, IntRange) and control.live:
        values = tuple(range(control.live[0], control.live[1] + 1))
    if known and value in values:
        return
    if isinstance(control, Choice):
        wanted = "one of " + ", ".join(repr(v) for v in values)
    else:
        wanted = f"a whole number from {values[0]} to {values[-1]}"
    raise ValueError(f"{control.name}: expected {wanted}, received {value!r}")


def _spec(control: Control, kind: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": control.name,
        "label": control.label,
        "value": control.default,
    }
