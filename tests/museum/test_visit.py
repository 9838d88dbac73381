"""A visit: drawn by a seed, answered from the matrix, scored, and readable without Python."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from cpcore.museum import CHECKLIST, EXHIBITS, Museum, failed
from cpcore.museum.examination import repaired, symptom
from cpcore.museum.page import facts_text
from cpcore.museum.visit import reply


def letter(museum: Museum, number: int, right: bool = True) -> str:
    """A letter that is right, or the first that is not."""
    offered = museum.options(number)
    return next(x for x, name in offered.items() if (name == museum.ids[number - 1]) == right)


def test_a_visit_shows_twelve_exhibits_in_an_order_of_its_seed() -> None:
    orders = [tuple(Museum(seed).ids) for seed in range(20)]
    assert orders == [tuple(Museum(seed).ids) for seed in range(20)]
    assert all(len(order) == len(set(order)) == 12 for order in orders)
    assert len(set(orders)) == 20
    assert set().union(*orders) == set(EXHIBITS)
    assert set(Museum(3, size=16).ids) == set(EXHIBITS)


def test_four_wrong_causes_and_the_right_one_are_offered_in_any_order() -> None:
    places = set()
    for seed in range(10):
        museum = Museum(seed, size=16)
        for number in range(1, 17):
            offered = museum.options(number)
            assert list(offered) == list("abcde")
            assert len(set(offered.values())) == 5
            places.add(letter(museum, number))
    assert places == set("abcde")


def test_titles_and_stories_do_not_say_the_cause() -> None:
    for exhibit in EXHIBITS.values():
        said = set(re.findall(r"\w{5,}", f"{exhibit.title} {exhibit.story}".lower()))
        cause = set(re.findall(r"\w{5,}", exhibit.option.lower()))
        assert said & cause <= {"dropout", "first", "gradient", "heads"}, exhibit.id


def test_a_right_guess_names_the_check_and_a_wrong_one_what_speaks_against_it() -> None:
    titles = {check.title: check.id for check in CHECKLIST}
    for exhibit in EXHIBITS.values():
        assert reply(exhibit, exhibit.id).startswith("\N{CHECK MARK} right. It shows in: ")
        for decoy in exhibit.decoys:
            answer = reply(exhibit, decoy)
            found = re.fullmatch(
                "\N{BALLOT X} wrong. That would (fail|pass), and this (passes|fails): (.*)\\.",
                answer,
            )
            assert found, answer
            check = titles[found[3]]
            assert (check in failed(decoy)) == (found[1] == "fail"), answer
            assert (check in failed(exhibit.id)) == (found[2] == "fails"), answer


def test_only_the_first_guess_counts() -> None:
    museum = Museum(seed=5)
    museum.guess(1, letter(museum, 1))
    museum.guess(2, letter(museum, 2, right=False))
    museum.guess(2, letter(museum, 2))
    museum.guess(3, letter(museum, 3, right=False))
    museum.guess(1, letter(museum, 1, right=False))
    museum.run(3, "padding")
    text = "1 of 12 at the first guess, 1 later, 10 open; checks run: 1."
    assert repr(museum.score()) == text
    assert text in museum.score()._repr_html_()
    assert repr(Museum(5).score()).startswith("0 of 12")


def test_a_check_says_what_it_saw() -> None:
    museum = Museum(0, size=16)
    place = {name: i for i, name in enumerate(museum.ids, start=1)}
    assert museum.run(place["padding"], "padding") == "NaN in every padded slot: fails, NaN"
    passed = museum.run(place["padding"], "dv")
    assert passed == "dV against dense: passes, rounding only"


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m: m.show(0), "number: expected an integer of at least 1, received 0"),
        (lambda m: m.reveal(13), "number: expected 1 to 12, received 13"),
        (lambda m: m.guess(1, "f"), "letter: expected one of a, b, c, d, e, received 'f'"),
        (lambda m: m.run(1, "luck"), "check: expected one of heads, .* counts, received 'luck'"),
        (lambda m: Museum(-1), "seed: expected an integer of at least 0, received -1"),
        (lambda m: Museum(0, 17), "size: expected at most 16, received 17"),
    ],
)
def test_what_does_not_exist_is_refused_and_changes_no_score(act, message: str) -> None:
    museum = Museum(0)
    with pytest.raises(ValueError, match=f"^{message}$"):
        act(museum)
    assert repr(museum.score()) == repr(Museum(0).score())


@pytest.fixture(scope="module")
def page() -> ElementTree.Element:
    return ElementTree.fromstring(Museum(0, size=16)._repr_html_())


def test_the_page_needs_no_script_and_folds_what_gives_an_answer_away(page) -> None:
    assert not [e.tag for e in page.iter() if e.tag in {"script", "style", "button", "input"}]
    assert not [e for e in page.iter() if "id" in e.attrib]
    rooms = page.findall("details")
    assert len(rooms) == 16
    for room, name in zip(rooms, Museum(0, size=16).ids, strict=True):
        heads = [d.findtext("summary") for d in room.findall("details")]
        options = [EXHIBITS[x].option for x in (name, *EXHIBITS[name].decoys)]
        assert sorted(h.partition(". ")[2] for h in heads[:5]) == sorted(options)
        assert heads[5:] == ["Checks that fail", "Cause", "Repair"]
        folded = {e for d in room.findall("details") for e in d.iter()}
        shown = " ".join(e.text or "" for e in room.iter() if e not in folded)
        assert EXHIBITS[name].option not in shown
        assert EXHIBITS[name].cause not in shown


def test_every_exhibit_links_its_report_and_says_its_day(page) -> None:
    links = {a.get("href"): a.text for a in page.iter("a")}
    sources = [exhibit.source for exhibit in EXHIBITS.values()]
    assert links == {source.url: source.name for source in sources}
    text = "".join(page.itertext())
    for source in sources:
        repository, _, number = source.name.partition("#")
        assert source.url.endswith(f"/{number}")
        assert f"/{repository.split('/')[-1].lower()}/" in source.url.lower()
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", source.date)
        assert f"{source.name}, {source.date}, {source.kind}: {source.says}" in text


def test_text_and_html_of_an_exhibit_hold_the_same_table() -> None:
    museum = Museum(0, size=16)
    for number, name in enumerate(museum.ids, start=1):
        exhibit = EXHIBITS[name]
        for shown, facts in (
            (museum.show(number), symptom(name)),
            (museum.reveal(number), repaired(name)),
        ):
            root = ElementTree.fromstring(shown._repr_html_())
            cells = ["".join(c.itertext()) for row in root.iter("tr") for c in row]
            if facts.figure is None:
                assert cells == [cell for row in (facts.columns, *facts.rows) for cell in row]
            text = repr(shown)
            assert text.startswith(f"{number}. {exhibit.title}\n")
            assert facts_text(facts) in text


def test_what_is_shown_hides_what_is_revealed() -> None:
    museum = Museum(0, size=16)
    for number, name in enumerate(museum.ids, start=1):
        exhibit = EXHIBITS[name]
        for secret in (exhibit.cause, exhibit.repair, exhibit.source.name):
            assert secret not in repr(museum.show(number))
            assert secret in repr(museum.reveal(number))


def test_a_visit_prints_its_titles_only() -> None:
    museum = Museum(2)
    lines = repr(museum).split("\n")
    assert lines[0] == "Museum, seed 2"
    assert lines[1:] == [f"{i}. {EXHIBITS[x].title}" for i, x in enumerate(museum.ids, start=1)]
