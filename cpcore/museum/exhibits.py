"""The sixteen exhibits: what is seen, what could be meant, what it was, and who reported it.

An exhibit holds no result: symptom, verdicts and repair are computed when they are shown. Wrong
options are causes of other exhibits, so that what speaks against them is computed as well.
"""

from dataclasses import dataclass

from cpcore.museum.facts import Probe
from cpcore.museum.system import System


@dataclass(frozen=True)
class Source:
    """A public report: its short name, address, the day it was opened and what it says.

    key: its entry in the book's list of references. kind: what the code is that it speaks of.
    """

    name: str
    key: str
    url: str
    date: str
    kind: str
    says: str


@dataclass(frozen=True)
class Exhibit:
    """One wrong system. `decoys` are the ids of the exhibits whose causes are offered beside."""

    id: str
    title: str
    story: str
    probe: Probe
    option: str
    decoys: tuple[str, ...]
    check: str
    cause: str
    repair: str
    system: System
    source: Source


def github(repository: str, number: int, kind: str = "issues") -> str:
    """Address of an issue, or with kind "pull" of a pull request."""
    return f"https://github.com/{repository}/{kind}/{number}"
