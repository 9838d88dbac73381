"""A visit: exhibits in an order drawn by a seed, guesses, checks, and a score at the end.

Owns what a visitor has done. The whole visit also shows as one page of HTML that needs neither
Python nor scripts: options, check, cause and repair are folded.
"""

from random import Random

from cpcore.checks import expected, whole_number
from cpcore.museum.checklist import BY_ID, CHECKLIST
from cpcore.museum.examination import EXHIBITS, failed, repaired, symptom, verdicts
from cpcore.museum.exhibits import Exhibit
from cpcore.museum.page import Page, facts_html, facts_text, folded, frame, link, paragraph, title

LETTERS = "abcde"


class Museum:
    """Twelve of the sixteen exhibits, drawn and ordered by a seed.

    Exhibits are counted from 1. `show` an exhibit, `run` a check on it, `guess` a letter, `reveal`
    it, and ask for the `score`. Only the first guess at each exhibit counts.

    Raises: ValueError for a seed or size that is no whole number, more exhibits than there are, a
        number that no exhibit has, a letter that is not offered or a check that is not listed.
    """

    def __init__(self, seed: int = 0, size: int = 12) -> None:
        self.seed, size = whole_number("seed", seed, 0), whole_number("size", size, 1)
        if size > len(EXHIBITS):
            raise expected("size", f"at most {len(EXHIBITS)}", size)
        self.ids: list[str] = Random(self.seed).sample(list(EXHIBITS), size)
        self.guesses: dict[int, list[str]] = {}
        self.checks: dict[int, list[str]] = {}

    def exhibit(self, number: int) -> Exhibit:
        """The exhibit with this number."""
        if whole_number("number", number, 1) > len(self.ids):
            raise expected("number", f"1 to {len(self.ids)}", number)
        return EXHIBITS[self.ids[number - 1]]

    def options(self, number: int) -> dict[str, str]:
        """The causes on offer: a letter for the id of an exhibit that has this cause."""
        exhibit = self.exhibit(number)
        offered = [exhibit.id, *exhibit.decoys]
        Random(f"{self.seed} {exhibit.id}").shuffle(offered)
        return dict(zip(LETTERS, offered, strict=True))

    def show(self, number: int) -> Page:
        """What is seen of an exhibit, and the causes on offer."""
        exhibit = self.exhibit(number)
        facts = symptom(exhibit.id)
        head = f"{number}. {exhibit.title}"
        offered = [f"  {x} {EXHIBITS[id_].option}" for x, id_ in self.options(number).items()]
        text = "\n".join((head, exhibit.story, facts_text(facts), "Which one is it?", *offered))
        return Page(text, frame(title(head), self._closed(number)))

    def run(self, number: int, check: str) -> str:
        """One check of the list on an exhibit: what it saw."""
        exhibit = self.exhibit(number)
        if check not in BY_ID:
            raise expected("check", f"one of {', '.join(BY_ID)}", repr(check))
        self.checks.setdefault(number, []).append(check)
        verdict = verdicts(exhibit.id)[check]
        return f"{BY_ID[check].title}: {'passes' if verdict.passed else 'fails'}, {verdict.saw}"

    def guess(self, number: int, letter: str) -> str:
        """Whether the cause with this letter is the one, and if not, what speaks against it."""
        options = self.options(number)
        if letter not in options:
            raise expected("letter", f"one of {', '.join(options)}", repr(letter))
        self.guesses.setdefault(number, []).append(letter)
        return reply(self.exhibit(number), options[letter])

    def reveal(self, number: int) -> Page:
        """The check that reveals an exhibit, its cause, its repair and its source."""
        exhibit = self.exhibit(number)
        verdict = verdicts(exhibit.id)[exhibit.check]
        source = exhibit.source
        lines = (
            f"{number}. {exhibit.title}",
            f"Check: {BY_ID[exhibit.check].title}: {verdict.saw}",
            f"Cause: {exhibit.cause}",
            f"Repair: {exhibit.repair}",
            facts_text(repaired(exhibit.id)),
            f"Source: {source.name}, {source.date}, {source.kind}: {source.says}",
        )
        return Page("\n".join(lines), frame(title(lines[0]), self._opened(number, True)))

    def score(self) -> Page:
        """Right at the first guess, right later, not solved; checks that were run."""
        first = later = 0
        for number, letters in self.guesses.items():
            right = [self.options(number)[x] == self.ids[number - 1] for x in letters]
            first, later = first + right[0], later + (any(right) and not right[0])
        runs = sum(map(len, self.checks.values()))
        text = (
            f"{first} of {len(self.ids)} at the first guess, {later} later, "
            f"{len(self.ids) - first - later} open; checks run: {runs}."
        )
        return Page(text, frame(paragraph(text)))

    def __repr__(self) -> str:
        titles = (f"{i}. {EXHIBITS[id_].title}" for i, id_ in enumerate(self.ids, start=1))
        return "\n".join((f"Museum, seed {self.seed}", *titles))

    def _repr_html_(self) -> str:
        rooms = (
            folded(
                f"{n}. {self.exhibit(n).title}",
                self._closed(n),
                paragraph("When you have guessed:"),
                self._opened(n),
            )
            for n in range(1, len(self.ids) + 1)
        )
        return frame(*rooms)

    def _closed(self, number: int) -> str:
        """Symptom and options; an option opens to say whether it is the one."""
        exhibit = self.exhibit(number)
        offered = [
            folded(f"{x}. {EXHIBITS[id_].option}", paragraph(reply(exhibit, id_)))
            for x, id_ in self.options(number).items()
        ]
        facts = facts_html(symptom(exhibit.id))
        return "\n".join((paragraph(exhibit.story), facts, paragraph("Which one is it?"), *offered))

    def _opened(self, number: int, unfolded: bool = False) -> str:
        """Check, cause and repair, each folded unless they were asked for."""
        exhibit = self.exhibit(number)
        seen = [
            f"{i}. {check.title}: {verdicts(exhibit.id)[check.id].saw}."
            for i, check in enumerate(CHECKLIST, start=1)
            if check.id in failed(exhibit.id)
        ]
        repair = paragraph(exhibit.repair), facts_html(repaired(exhibit.id))
        source = exhibit.source
        told = f"{source.date}, {source.kind}: {source.says}"
        origin = f"<p>{link(source.name, source.url)}, {told}</p>"
        return "\n".join(
            (
                folded("Checks that fail", *map(paragraph, seen), unfolded=unfolded),
                folded("Cause", paragraph(exhibit.cause), origin, unfolded=unfolded),
                folded("Repair", *repair, unfolded=unfolded),
            )
        )


def reply(exhibit: Exhibit, guessed: str) -> str:
    """What a guess is answered; what speaks against a wrong one follows from the matrix."""
    if guessed == exhibit.id:
        return f"\N{CHECK MARK} right. It shows in: {BY_ID[exhibit.check].title}."
    mine, other = set(failed(exhibit.id)), set(failed(guessed))
    for check in CHECKLIST:
        if check.id in other - mine:
            return f"\N{BALLOT X} wrong. That would fail, and this passes: {check.title}."
    name = next(check.title for check in CHECKLIST if check.id in mine - other)
    return f"\N{BALLOT X} wrong. That would pass, and this fails: {name}."
