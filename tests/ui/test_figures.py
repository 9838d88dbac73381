"""The still pictures of chapter 2: what they draw is what they were given, in words as well."""

import re
from xml.etree import ElementTree

import pytest

from cpcore.ui.figure import Figure
from cpcore.ui.figures import BAR, mass_bars, ownership, scorecard
from cpcore.ui.svg import RANK_COLORS, rank_color
from tests.support.figures import cells, pictures, words

SHARES = {"worst": [0.1, 0.2, 0.7], "even": [0.3, 0.3, 0.4]}


def bars(shares=SHARES, **more) -> Figure:
    return mass_bars(shares, **({"alt": "Mass per rank."} | more))


def rectangles(picture: ElementTree.Element) -> list[tuple[str, float, float]]:
    """(color, bottom, height) of each bar, left to right."""
    found = [{k: r.get(k, "") for k in ("fill", "y", "height")} for r in picture.iter("rect")]
    return [(r["fill"], float(r["y"]) + float(r["height"]), float(r["height"])) for r in found]


def test_a_figure_shows_its_html_and_its_text_never_changes():
    one, other = Figure("<p>1</p>"), Figure("<p>2</p>")
    assert one._repr_html_() == "<p>1</p>"
    assert repr(one) == repr(other)
    assert "\n" not in repr(one)


def test_a_figure_refuses_a_picture_without_alt_text():
    with pytest.raises(ValueError, match="html: expected alt text"):
        Figure("<svg></svg>")


@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
def test_ownership_says_own_on_the_diagonal_and_remote_on_every_other_visible_block(ranks):
    full, causal = pictures(ownership(ranks))
    assert words(full).count("own") == words(causal).count("own") == ranks
    assert words(full).count("remote") == ranks * (ranks - 1)
    assert words(causal).count("remote") == ranks * (ranks - 1) // 2


def test_the_table_of_ownership_says_the_same_by_a_double_loop():
    table = cells(ownership(3))[1:]
    for q in range(3):
        for k in range(3):
            assert table[q][1 + k] == ("own" if q == k else "remote")
            masked = "nothing visible" if k > q else table[q][1 + k]
            assert table[3 + q][1 + k] == masked


def test_a_block_has_the_color_of_the_rank_that_owns_its_keys():
    full, causal = pictures(ownership(4))
    blocks = [color for color, _, _ in rectangles(full)]
    assert blocks == list(RANK_COLORS[:4]) * 4
    seen = [color for color, _, _ in rectangles(causal) if color != "none"]
    assert seen == [rank_color(k) for q in range(4) for k in range(q)]


@pytest.mark.parametrize("ranks", [0, 1, 6, 2.5, "4"])
def test_ownership_refuses_a_grid_whose_words_would_not_fit(ranks):
    with pytest.raises(ValueError, match="ranks: expected 2 to 5, received"):
        ownership(ranks)


def test_bars_are_as_high_as_their_shares_on_one_scale_for_all_panels():
    drawn = [rectangles(picture) for picture in pictures(bars())]
    for panel, shares in zip(drawn, SHARES.values(), strict=True):
        for rank, ((color, _, height), share) in enumerate(zip(panel, shares, strict=True)):
            assert color == rank_color(rank)
            assert height == pytest.approx(BAR * share / 0.7, abs=0.06)
    assert len({bottom for panel in drawn for _, bottom, _ in panel}) <= 2  # one floor, rounded


def test_the_even_share_is_a_line_through_a_bar_of_that_share():
    picture = pictures(bars({"even": [0.25] * 4}))[0]
    path = re.search(r"M0 ([\d.]+)H\d[^>]*stroke-dasharray", ElementTree.tostring(picture).decode())
    _, bottom, height = rectangles(picture)[0]
    assert float(path[1]) == pytest.approx(bottom - height, abs=0.11)
    assert "1/4" in words(picture)


def test_without_the_even_share_no_line_is_drawn():
    (picture,) = pictures(bars({"held": [1.0, 0.5]}, even=False))
    assert "stroke-dasharray" not in ElementTree.tostring(picture).decode()
    assert "1/2" not in words(picture)


def test_alt_text_and_table_hold_every_share():
    figure = bars()
    assert pictures(figure)[0].get("aria-label") == "Mass per rank. worst: 0.1, 0.2, 0.7."
    assert cells(figure) == [
        ["share", "rank 0", "rank 1", "rank 2"],
        ["worst", "0.1", "0.2", "0.7"],
        ["even", "0.3", "0.3", "0.4"],
    ]


@pytest.mark.parametrize(
    "shares", [{}, {"x": []}, {"x": [1.2]}, {"x": [-0.1]}, {"x": [float("nan")]}]
)
def test_bars_refuse_what_is_no_share(shares):
    with pytest.raises(ValueError, match="panels: expected shares from 0 to 1"):
        bars(shares)


def test_bars_refuse_an_empty_alt_text():
    with pytest.raises(ValueError, match="alt: expected"):
        mass_bars(SHARES, alt="")


def test_bars_of_zero_height_are_drawn_without_a_division_by_zero():
    (picture,) = pictures(bars({"nothing": [0.0, 0.0]}))
    assert [height for _, _, height in rectangles(picture)] == [0, 0]


def test_bars_and_line_of_eight_ranks_stay_inside_the_picture():
    (picture,) = pictures(bars({"x": [1 / 8] * 8}))
    edges = [float(r.get("x")) + float(r.get("width")) for r in picture.iter("rect")]
    width = float(picture.get("viewBox").split()[2])
    assert max(edges) < width
    last = next(t for t in picture.iter("text") if t.text == "1/8")
    assert float(last.get("x")) + 24 <= width


def test_a_scorecard_says_right_or_wrong_in_words_beside_each_mark():
    card = scorecard(["mean", "ring"], {"easy": [True, True], "hard": [False, True]})
    assert cells(card) == [
        ["test", "mean", "ring"],
        ["easy", "✓ right", "✓ right"],
        ["hard", "✗ wrong", "✓ right"],
    ]


def test_a_scorecard_refuses_a_test_with_a_missing_result():
    with pytest.raises(ValueError, match="passed: expected 2 results, received 'easy'"):
        scorecard(["mean", "ring"], {"easy": [True]})


def test_drawing_twice_gives_the_same_text_and_no_element_ids():
    for draw in (lambda: ownership(4), bars, lambda: scorecard(["a"], {"t": [True]})):
        assert draw() == draw()
        assert " id=" not in draw().html
