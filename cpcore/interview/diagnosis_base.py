"""What a table of evidence is: causes down, checks to the right, what is seen in each place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Check(NamedTuple):
    """Something to look at, and the minutes that it takes."""

    name: str
    minutes: int


class Evidence(NamedTuple):
    """A report, its checks, and for each cause what every check shows."""

    name: str
    story: str
    checks: tuple[Check, ...]
    seen: Mapping[str, tuple[str, ...]]
