"""The bank as a whole: questions, chains, the rubric's ladder, and what is composed from them.

Owns the checks across entries, the mock interview and the flashcards. It reads no file: whoever
calls it hands in what the files hold, so that it works in a page as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cpcore.checks import expected
from cpcore.interview.schema import AXES, LEVELS, filled
from cpcore.interview.schema import faults as entry_faults


class Card(NamedTuple):
    """A flashcard: the question, and an answer of one or two sentences."""

    question: str
    front: str
    back: str


class Mock(NamedTuple):
    """A mock interview: the questions in their order, and the minutes that they take."""

    chain: str
    questions: tuple[str, ...]
    minutes: int


@dataclass(frozen=True)
class Bank:
    """Questions by id, every placeholder filled; chains by name; the ladder of each axis."""

    questions: Mapping[str, Mapping[str, Any]]
    chains: Mapping[str, tuple[str, ...]]
    ladder: Mapping[str, tuple[str, ...]]

    def level(self, question: str) -> int:
        """Place of a question's level, 0 for a warm-up."""
        return LEVELS.index(self.questions[question]["level"])

    def chains_of(self, question: str) -> tuple[str, ...]:
        """Names of the chains that a question stands in."""
        return tuple(name for name, chain in self.chains.items() if question in chain)

    def cards(self) -> tuple[Card, ...]:
        """One flashcard for each question, in the order of the bank."""
        return tuple(
            Card(name, entry["prompt"], entry["short"]) for name, entry in self.questions.items()
        )

    def mocks(self, level: str, minutes: int) -> tuple[Mock, ...]:
        """Every mock interview of a level that fits in the minutes, one for each chain at most.

        A chain is asked in its order, without questions above the level, and must reach the
        level. If it is too long, its first questions are left out; if time is left, questions of
        the same level from other chains follow.

        Raises: ValueError for another level, or minutes too few for one question.
        """
        if level not in LEVELS:
            raise expected("level", f"one of {', '.join(LEVELS)}", repr(level))
        found = (self._mock(name, LEVELS.index(level), minutes) for name in self.chains)
        mocks = tuple({mock.questions: mock for mock in found if mock.questions}.values())
        if not mocks:
            raise expected("minutes", "enough for one question of the level", minutes)
        return mocks

    def _mock(self, name: str, level: int, minutes: int) -> Mock:
        chain = [q for q in self.chains[name] if self.level(q) <= level]
        while chain and self._minutes(chain) > minutes:
            chain = chain[1:]
        if not any(self.level(q) == level for q in chain):
            return Mock(name, (), 0)
        start = list(self.chains).index(name)
        others = list(self.chains.values())[start + 1 :] + list(self.chains.values())[:start]
        for question in (q for other in others for q in other):
            room = minutes - self._minutes(chain)
            near = self.level(question) == level and question not in chain
            if near and self.questions[question]["minutes"] <= room:
                chain.append(question)
        return Mock(name, tuple(chain), self._minutes(chain))

    def _minutes(self, questions: Sequence[str]) -> int:
        return sum(self.questions[q]["minutes"] for q in questions)


def faults(
    entries: Sequence[Mapping[str, Any]],
    chains: Mapping[str, Sequence[str]],
    ladder: Mapping[str, Sequence[str]],
) -> list[str]:
    """Everything wrong with a bank: its entries, repeated ids, chains, ladder."""
    found = [fault for entry in entries for fault in entry_faults(entry)]
    ids = Counter(entry.get("id") for entry in entries)
    found += [f"{name}: {count} entries of this id" for name, count in ids.items() if count > 1]
    chained = Counter(q for chain in chains.values() for q in set(chain))
    found += [f"{name}: in no chain" for name in ids if name not in chained]
    found += [f"{name}: named by a chain, not in the bank" for name in chained if name not in ids]
    found += [f"chain {name}: a question twice" for name, c in chains.items() if len(c) > len({*c})]
    found += [f"chain {name}: fewer than two" for name, c in chains.items() if len(c) < 2]
    if tuple(ladder) != AXES or any(len(rungs) != 4 for rungs in ladder.values()):
        found.append(f"ladder: expected four rungs for each of {', '.join(AXES)}")
    return found


def make_bank(
    entries: Sequence[Mapping[str, Any]],
    chains: Mapping[str, Sequence[str]],
    ladder: Mapping[str, Sequence[str]],
) -> Bank:
    """The bank made of what the files hold.

    Raises: ValueError that lists every fault.
    """
    found = faults(entries, chains, ladder)
    if found:
        raise ValueError("\n".join(found))
    return Bank(
        {entry["id"]: filled(entry) for entry in entries},
        {name: tuple(chain) for name, chain in chains.items()},
        {axis: tuple(rungs) for axis, rungs in ladder.items()},
    )
