"""The visit in a terminal: what is typed, and what is answered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cpcore.__main__ import main
from cpcore.museum import Museum


def letter(museum: Museum, number: int, right: bool = True) -> str:
    offered = museum.options(number)
    return next(x for x, name in offered.items() if (name == museum.ids[number - 1]) == right)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lines that the visitor types; after the last one the input ends."""
    lines: list[str] = []

    def answers() -> Iterator[str]:
        yield from lines

    each = answers()

    def read(_prompt: str) -> str:
        for line in each:
            return line
        raise EOFError

    monkeypatch.setattr("builtins.input", read)
    return lines


def test_a_visit_of_two_exhibits_is_answered_line_by_line(typed, capsys) -> None:
    museum = Museum(4, size=2)
    wrong, right = letter(museum, 1, right=False), letter(museum, 1)
    typed += ["checks", "what", "padding", wrong, right, "next"]
    assert main(["museum", "--seed", "4", "--size", "2"]) == 0
    said = capsys.readouterr().out
    order = [
        repr(museum.show(1)),
        "  padding   NaN in every padded slot",
        "expected a letter, the name of a check, `checks`, `next` or `quit`",
        museum.run(1, "padding"),
        museum.guess(1, wrong),
        museum.guess(1, right),
        repr(museum.reveal(1)),
        repr(museum.show(2)),
        repr(museum.reveal(2)),
        repr(museum.score()),
    ]
    places = [said.find(part) for part in order]
    assert -1 not in places
    assert places == sorted(places)
    assert "0 of 2 at the first guess, 1 later, 1 open; checks run: 1." in said


@pytest.mark.parametrize("last", [["quit"], []])
def test_quitting_or_the_end_of_input_shows_the_score(typed, capsys, last: list[str]) -> None:
    typed += last
    assert main(["museum"]) == 0
    said = capsys.readouterr().out
    assert repr(Museum(0).show(1)) in said
    assert repr(Museum(0).show(2)) not in said
    assert said.endswith("0 of 12 at the first guess, 0 later, 12 open; checks run: 0.\n")


def test_a_museum_that_cannot_be_is_refused(typed, capsys) -> None:
    assert main(["museum", "--size", "17"]) == 2
    assert capsys.readouterr().out == "size: expected at most 16, received 17\n"
