"""The checklist tells every exhibit apart, and says nothing against a right system."""

from __future__ import annotations

import inspect
from xml.etree import ElementTree

import pytest

from cpcore.museum import CHECKLIST, EXHIBITS, System, examine, failed, faults, matrix
from cpcore.museum.examination import verdicts
from cpcore.museum.grid import CROSS, LEFT, SIDE, TICK, TOP
from cpcore.museum.rings import PairRing

# The matrix, row by row: x where the exhibit fails. Columns in the order of the checklist.
EXPECTED = {
    "mean": "xxx.xx.xxxx.",
    "merge": "..xx..x.....",
    "triangle": ".xxxxxxx.xx.",
    "angles": ".x..........",
    "order": "x.xxxxxx.xx.",
    "heads": "x...........",
    "skip": "...xxxxx.xxx",
    "balance": "...........x",
    "stale": "....xx....x.",
    "softmax": "....x.....x.",
    "return": "....xxx...x.",
    "draw": ".......x....",
    "means": ".........xx.",
    "bits": "xxxxxx.xxxx.",
    "padding": "...x........",
    "context": "..........x.",
}


def row(name: str) -> str:
    return "".join("x" if check.id in failed(name) else "." for check in CHECKLIST)


def test_there_are_at_least_12_exhibits_and_at_most_12_checks() -> None:
    assert len(EXHIBITS) == len(EXPECTED) == 16
    assert len(CHECKLIST) == len({check.id for check in CHECKLIST}) == 12


@pytest.mark.parametrize("system", [System(), PairRing()], ids=lambda s: type(s).__name__)
def test_a_right_system_passes_every_check(system: System) -> None:
    assert {name: v.saw for name, v in examine(system).items() if not v.passed} == {}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_exhibit_fails_the_checks_that_are_declared(name: str) -> None:
    assert row(name) == EXPECTED[name]


def test_no_two_exhibits_fail_the_same_checks_and_none_passes_all() -> None:
    rows = {name: row(name) for name in EXHIBITS}
    assert len(set(rows.values())) == len(rows)
    assert all("x" in line for line in rows.values())


def test_every_check_is_failed_by_some_exhibit_and_passed_by_another() -> None:
    for i, check in enumerate(CHECKLIST):
        column = {row(name)[i] for name in EXHIBITS}
        assert column == {"x", "."}, check.id


def test_the_check_that_reveals_an_exhibit_is_one_that_it_fails() -> None:
    for name, exhibit in EXHIBITS.items():
        assert exhibit.check in failed(name), name


def test_what_a_check_saw_is_printed_alike_on_any_machine() -> None:
    """At most two digits, none below the rounding of 16 bits; and in words otherwise."""
    for name in EXHIBITS:
        for verdict in verdicts(name).values():
            assert (verdict.saw == "rounding only") <= verdict.passed, name
            assert len(verdict.saw) < 80, name


def test_an_exhibit_is_one_decision_away_from_a_right_system() -> None:
    """One method replaced, or one fault of `simulate` named; a loss goes with its gradient."""
    for exhibit in EXHIBITS.values():
        kind = type(exhibit.system)
        assert kind.__module__ == faults.__name__
        assert kind.__bases__[0] in (System, PairRing)
        changed = {name for name in vars(kind) if not name.startswith("_")}
        assert len(changed) == 1 or changed == {"loss", "loss_gradient"}, exhibit.id


def test_no_wrong_system_is_without_an_exhibit() -> None:
    kinds = {
        kind
        for _, kind in inspect.getmembers(faults, inspect.isclass)
        if kind.__module__ == faults.__name__
    }
    assert kinds == {type(exhibit.system) for exhibit in EXHIBITS.values()}


def test_the_printed_matrix_holds_every_verdict_in_text_and_in_html() -> None:
    page = matrix()
    lines = repr(page).split("\n")
    assert lines[0].split() == [str(i) for i in range(1, 13)]
    for line, name in zip(lines[1:-2], EXHIBITS, strict=True):
        head, *marks = line.split()
        assert (head, "".join(marks)) == (name, EXPECTED[name])
    assert lines[-2] == "right system " + "  ." * 12
    fails = sum(line.count("x") for line in EXPECTED.values())
    assert page._repr_html_().count("\N{BALLOT X} fails") == fails
    assert page._repr_html_().count("\N{CHECK MARK} passes") == 17 * 12 - fails


def test_the_drawn_matrix_has_a_cross_for_each_failure_and_says_them_in_words() -> None:
    root = ElementTree.fromstring(matrix()._repr_html_())
    picture = next(root.iter("svg"))
    paths = [path.get("d", "") for path in picture.iter("path")]
    fails = sum(line.count("x") for line in EXPECTED.values())
    crosses, ticks = (sum(path.count(mark) for path in paths) for mark in (CROSS, TICK))
    assert (crosses, ticks) == (fails + 1, 17 * 12 - fails + 1), "one more of each in the legend"
    for i, name in enumerate(EXPECTED):
        for j, mark in enumerate(EXPECTED[name]):
            corner = f"M{LEFT + SIDE * j + 6} {TOP + SIDE * i + 6}"
            assert any(corner + {"x": CROSS, ".": TICK}[mark] in path for path in paths), name
    said = picture.get("aria-label", "")
    assert "softmax fails 5, 11; return fails 5, 6, 7, 11;" in said
    assert said.endswith("right system fails none.")
    assert all(float(text.get("x", "")) <= 330 for text in picture.iter("text"))
