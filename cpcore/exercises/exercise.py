"""What an exercise consists of, and what each part promises.

Owns the records that the bank fills. Leaves out how an answer is called (`calls`), compared
(`compare`) and judged (`judging`). The solution is a file of `solutions`, from which the
specification, the starter and its line budget are taken (`sources`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Args = tuple[Any, ...]
Answer = Callable[..., Any]

LEVELS = ("warm-up", "core", "senior", "staff")


@dataclass(frozen=True, eq=False)
class Example:
    """A visible example: what it shows, and fresh arguments on each call."""

    title: str
    args: Callable[[], Args]


@dataclass(frozen=True, eq=False)
class Claim:
    """A hidden test: a sentence that must hold for every case.

    cases: fresh arguments, in any order; the judge tries the smallest first. check: says what is
    wrong with a result, None if nothing; without it the result must equal that of the oracle within
    `tolerance` (None: what the dtype allows). clean: no operation may be invalid or divide by 0.
    peak: the most bytes that the call may hold at once.
    """

    text: str
    cases: Callable[[], Iterable[Args]]
    check: Callable[..., str | None] | None = None
    tolerance: float | None = None
    clean: bool = False
    peak: Callable[..., int] | None = None


@dataclass(frozen=True, eq=False)
class Wrong:
    """A plausible wrong answer: the solution after some replacements of its text.

    means: the mistake in words, which completes "This is what comes out if …". passes_run: whether
    the visible examples fail to notice it. seen_in: the public report that it follows.
    """

    name: str
    means: str
    edits: tuple[tuple[str, str], ...]
    passes_run: bool = False
    seen_in: str = ""


def call(answer: Answer, *args: Any) -> Any:
    """The answer called with the arguments: how most exercises are played."""
    return answer(*args)


@dataclass(frozen=True, eq=False)
class Exercise:
    """One exercise; `oracle` shares no code with the solution.

    parts: names of the elements of a result that is a tuple. play: calls an answer, for exercises
    in which several ranks run it. shared: how the arguments shown reach those ranks. large:
    arguments on which cost is measured. from_scratch: the answer may not use the package.
    commentary: minute and sentence, for exercises against the clock.

    Units: minutes is the time an unhurried reader needs.
    """

    name: str
    title: str
    level: str
    minutes: int
    chapter: str
    hints: tuple[str, str, str]
    examples: tuple[Example, ...]
    claims: tuple[Claim, ...]
    oracle: Answer
    wrong: tuple[Wrong, ...]
    parts: tuple[str, ...] = ()
    play: Callable[..., Any] = call
    large: Callable[[], Args] | None = None
    most_lines: int | None = None
    from_scratch: bool = False
    shared: str = ""
    commentary: tuple[tuple[int, str], ...] = ()

    def all_claims(self) -> tuple[Claim, ...]:
        """The claims of Submit: first that the examples come out right."""
        examples = self.examples
        shown = Claim(
            "The examples come out right",
            lambda: [each.args() for each in examples],
            check=self.claims[0].check,
        )
        return (shown, *self.claims)
