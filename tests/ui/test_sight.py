"""The grids of who sees whom: squares, marks, borders and words say what the relation says."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from cpcore import contiguous, from_lengths, zigzag
from cpcore.ui.figure import Figure
from cpcore.ui.sight import CIRCLE, CROSS, LEFT, LEGEND, TOP, Sight, sight_grids
from cpcore.ui.svg import FONT, WIDTH, rank_color
from tests.support.errors import refused
from tests.support.figures import parsed
from tests.support.relation import double_loop

PLACES = list(range(8))
RIGHT = double_loop(PLACES, PLACES, {})
LOCAL = double_loop([i % 4 for i in PLACES], [j % 4 for j in PLACES], {})
SIDE = 26  # of a square, where 8 positions share the width


def grids(layout=None, alt="Two ranks.", **more) -> Figure:
    panel = Sight("Local", LOCAL, **({"labels": PLACES, "wanted": RIGHT} | more))
    return sight_grids([panel], layout or contiguous(8, 2), alt=alt)


def picture(figure: Figure) -> ElementTree.Element:
    return next(parsed(figure).iter("svg"))


def words(figure: Figure) -> list[str]:
    return [text.text or "" for text in picture(figure).iter("text")]


def squares(figure: Figure) -> dict[tuple[int, int], str]:
    """(query, key) -> the color of its square."""
    found = {}
    for path in picture(figure).iter("path"):
        for x, y in re.findall(r"M([\d.]+) ([\d.]+)h26v26", path.get("d", "")):
            found[int((float(y) - TOP) // SIDE), int((float(x) - LEFT) // SIDE)] = path.get("fill")
    return found


def marks(figure: Figure) -> dict[tuple[int, int], tuple[str, str]]:
    """(query, key) -> what is drawn on the square, and its ink; the legend lies below the grid."""
    found = {}
    for path in picture(figure).iter("path"):
        for x, y, curve in re.findall(r"M([\d.]+) ([\d.]+)m-5 (-5l|0a)", path.get("d", "")):
            place = int((float(y) - TOP) // SIDE), int((float(x) - LEFT) // SIDE)
            if place[0] < len(PLACES):
                kind = "cross" if curve == "-5l" else "circle"
                found[place] = kind, path.get("stroke", "")
    return found


@pytest.mark.parametrize("layout", [contiguous(8, 2), zigzag(8, 2), from_lengths([1, 5, 2])])
def test_every_seen_pair_and_no_other_has_a_square_in_its_key_owners_color(layout) -> None:
    drawn = squares(grids(layout))
    owner = {int(p): rank for rank, owned in enumerate(layout.owned) for p in owned}
    wanted = {(i, j): rank_color(owner[j]) for i in PLACES for j in PLACES if LOCAL[i, j]}
    assert drawn == wanted


def test_what_must_not_be_seen_has_a_cross_and_what_is_missing_a_circle() -> None:
    drawn = marks(grids())
    assert set(drawn) == {(i, j) for i in PLACES for j in PLACES if LOCAL[i, j] != RIGHT[i, j]}
    assert len(drawn) == 16
    for (i, j), mark in drawn.items():
        # rank 1 owns every key that is seen too much; its color takes dark ink
        assert mark == (("cross", "#111") if LOCAL[i, j] else ("circle", "currentColor"))


def test_a_cross_on_a_dark_square_is_white() -> None:
    everything = np.ones((8, 8), bool)
    panel = Sight("All", everything, PLACES, RIGHT)
    drawn = marks(sight_grids([panel], contiguous(8, 1), alt="One rank."))
    assert set(drawn.values()) == {("cross", "#fff")}


def test_the_legend_explains_both_marks_in_the_order_of_its_words() -> None:
    below = [p.get("d", "") for p in picture(grids()).iter("path") if "M58 " in p.get("d", "")[:4]]
    assert [CROSS in path for path in below] == [True, False]
    assert [CIRCLE in path for path in below] == [False, True]
    shown = [text for text in words(grids()) if text in LEGEND]
    assert shown == list(LEGEND)


def test_words_table_and_alt_text_count_the_same_pairs() -> None:
    figure = grids()
    assert "✗ wrong: 10 pairs too many, 6 missing" in words(figure)
    assert set(LEGEND) <= set(words(figure))
    told = picture(figure).get("aria-label", "")
    assert told == "Two ranks. Local: 30 pairs seen rightly, 10 too many, 6 missing."
    rows = [["".join(c.itertext()) for c in row] for row in parsed(figure).iter("tr")]
    assert rows[0] == ["query", "rank", "sees keys", "must not see", "misses"]
    for i, row in enumerate(rows[1:]):
        seen, extra, missing = (
            ", ".join(str(j) for j in PLACES if keep(j)) or "none"
            for keep in (
                lambda j, i=i: LOCAL[i, j],
                lambda j, i=i: LOCAL[i, j] and not RIGHT[i, j],
                lambda j, i=i: RIGHT[i, j] and not LOCAL[i, j],
            )
        )
        assert row == [f"Local, query {i}", str(i // 4), seen, extra, missing]


def test_a_right_relation_has_a_tick_no_mark_and_no_legend() -> None:
    figure = sight_grids([Sight("Right", RIGHT, PLACES, RIGHT)], contiguous(8, 2), alt="Two ranks.")
    assert "✓ right: 36 pairs" in words(figure)
    assert not marks(figure)
    assert not set(LEGEND) & set(words(figure))


def test_without_a_wanted_relation_pairs_are_counted_and_not_judged() -> None:
    figure = sight_grids([Sight("Local", LOCAL, PLACES)], contiguous(8, 2), alt="Two ranks.")
    assert "40 pairs" in words(figure)
    assert not marks(figure)
    assert "✗" not in figure.html
    assert "✓" not in figure.html


def test_thick_lines_lie_where_the_owner_changes() -> None:
    figure = grids(from_lengths([1, 5, 2]))
    (thick,) = [p for p in picture(figure).iter("path") if p.get("stroke-width") == "2"]
    down = {float(x) for x in re.findall(r"M([\d.]+) 62v", thick.get("d", ""))}
    assert down == {LEFT + SIDE * cut for cut in (0, 1, 6, 8)}


def test_labels_stand_on_both_sides_and_every_run_names_its_rank() -> None:
    shown = words(grids(zigzag(8, 2), labels=list("abcdefgh")))
    assert all(shown.count(letter) == 2 for letter in "abcdefgh")
    assert shown.count("0") == 4  # two runs of rank 0, above and at the left
    assert shown.count("1") == 2  # its two pieces are neighbors


def test_grids_of_one_figure_are_equally_high_and_nothing_leaves_the_picture() -> None:
    panels = [Sight("Right", RIGHT, PLACES, RIGHT), Sight("Local", LOCAL, PLACES, RIGHT)]
    figure = sight_grids(panels, contiguous(8, 2), alt="Two ranks.")
    high = [float(p.get("viewBox", "").split()[3]) for p in parsed(figure).iter("svg")]
    assert high[0] == high[1]
    for drawn in parsed(figure).iter("svg"):
        assert max(float(text.get("y", "0")) for text in drawn.iter("text")) < high[0]
    for size in (1, 8, 12):
        seen = np.ones((size, size), bool)
        names = ["A0"] * size
        drawn = picture(sight_grids([Sight("All", seen, names)], contiguous(size, 1), alt="All."))
        ends = re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", ElementTree.tostring(drawn).decode())
        assert max(float(x) + float(w) for x, _, w in ends) <= WIDTH
        height = float(drawn.get("viewBox", "").split()[3])
        assert max(float(t.get("y", "0")) for t in drawn.iter("text")) < height
        assert float(drawn.get("font-size", "0")) == FONT


def test_drawing_twice_gives_the_same_text_and_no_element_ids() -> None:
    assert grids() == grids()
    assert " id=" not in grids().html


def test_panels_that_do_not_fit_the_layout_are_refused() -> None:
    with refused("layout", "1 to 12 positions", 13):
        sight_grids([], contiguous(13, 2), alt="x")
    with refused("layout", "1 to 12 positions", 0):
        sight_grids([], contiguous(0, 2), alt="x")
    with refused("panels", "at least one", "none"):
        sight_grids([], contiguous(8, 2), alt="x")
    with refused("labels", "8 texts", 3):
        grids(labels=PLACES[:3])
    with refused("seen", "bool of shape (8, 8)", "bool of shape (4, 4)"):
        sight_grids([Sight("x", LOCAL[:4, :4], PLACES)], contiguous(8, 2), alt="x")
    with refused("wanted", "bool of shape (8, 8)", "int64 of shape (8, 8)"):
        grids(wanted=RIGHT.astype(np.int64))


def test_an_empty_alt_text_is_refused() -> None:
    with pytest.raises(ValueError, match="alt: expected"):
        grids(alt=" ")
