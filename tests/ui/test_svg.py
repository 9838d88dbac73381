"""The drawing helpers: text is escaped, alt text is required, letters can be read."""

import math
from xml.etree import ElementTree

import pytest

from cpcore.ui import svg

MINUS = "\N{MINUS SIGN}"


def test_text_is_escaped_wherever_it_enters():
    hostile = "<b>&\"'"
    drawn = svg.svg(10, hostile, svg.label(0, 0, hostile))
    root = ElementTree.fromstring(drawn)
    assert root.get("aria-label") == hostile
    assert root.find("text").text == hostile
    table = ElementTree.fromstring(svg.table([hostile, "x"], [[hostile, hostile]]))
    assert {cell.text for cell in table.iter() if cell.text and cell.text.strip()} == {
        hostile,
        "x",
    }


@pytest.mark.parametrize("alt", ["", "  ", "\n"])
def test_a_picture_without_alt_text_is_refused(alt):
    with pytest.raises(ValueError, match=r"alt: expected .*, received"):
        svg.svg(10, alt)


def test_the_rank_colors_are_the_color_blind_safe_eight():
    assert len(set(svg.RANK_COLORS)) == 8
    assert svg.RANK_COLORS[:3] == ("#0072B2", "#E69F00", "#009E73")
    assert svg.rank_color(0) == "#0072B2"
    assert svg.rank_color(8) == svg.rank_color(0)


def test_contrast_is_that_of_the_accessibility_guidelines():
    """Values from the definition: black on white is 21, a color on itself 1."""
    assert svg.contrast("#000", "#ffffff") == pytest.approx(21)
    assert svg.contrast("#0072B2", "#0072B2") == 1
    assert svg.contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("rank", range(8))
def test_text_on_a_rank_color_has_a_contrast_of_at_least_four_and_a_half(rank):
    fill = svg.rank_color(rank)
    ink = svg.text_color(fill)
    assert ink in ("#111", "#fff")
    assert svg.contrast(ink, fill) >= 4.5


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (-1e-9, "0"),
        (2.0, "2"),
        (0.5, "0.5"),
        (-1.2345, f"{MINUS}1.234"),
        (100.0, "100"),
        (1734.266, "1734.27"),
        (2.6881e43, "2.69e+43"),
        (math.inf, "inf"),
        (-math.inf, f"{MINUS}inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_printed_with_at_most_three_decimals(value, shown):
    assert svg.num(value) == shown


def test_a_tie_is_printed_alike_on_machines_that_round_differently():
    """0.0625 lies between 0.062 and 0.063: the last bit must not decide."""
    shown = {svg.num(x) for x in (0.0625, math.nextafter(0.0625, 0), math.nextafter(0.0625, 1))}
    assert len(shown) == 1


def test_coordinates_have_one_decimal_and_no_negative_zero():
    assert [svg.at(x) for x in (0, 3, 3.04, 3.06, -0.04, -2.5)] == [
        "0",
        "3",
        "3",
        "3.1",
        "0",
        "-2.5",
    ]


@pytest.mark.parametrize("kind", ["full", "partial", "skipped", "empty"])
def test_the_four_kinds_of_score_block_differ_and_only_visible_ones_are_filled(kind):
    drawn = svg.tile(0, 0, 20, kind, rank=2)
    ElementTree.fromstring(f"<g>{drawn}</g>")
    assert (svg.rank_color(2) in drawn) == (kind in ("full", "partial"))
    assert (svg.DOTS in drawn) == (kind == "empty")
    assert len({svg.tile(0, 0, 20, k) for k in ("full", "partial", "skipped", "empty")}) == 4


def test_an_unknown_kind_of_block_is_refused():
    with pytest.raises(ValueError, match=r"kind: expected full, .*, received 'half'"):
        svg.tile(0, 0, 20, "half")


def test_many_boxes_in_one_path_leave_out_what_has_no_area():
    assert svg.boxes([(1, 2, 3, 4), (9, 9, 0, 5)], 'fill="red"') == (
        '<path d="M1 2h3v4h-3z" fill="red"/>'
    )
    assert svg.boxes([(9, 9, 5, 0)], "") == ""


def test_a_table_names_the_scope_of_every_header_and_starts_collapsed():
    root = ElementTree.fromstring(svg.details(svg.table(["", "a"], [["r", "1"], ["s", "2"]])))
    assert root.tag == "details"
    assert root.get("open") is None
    assert root.find("div").get("tabindex") == "0", "a wide table is scrolled by keys as well"
    assert [h.get("scope") for h in root.iter("th")] == ["col", "col", "row", "row"]
    assert [c.text for c in root.iter("td")] == ["1", "2"]


def test_a_verdict_is_a_mark_and_a_word():
    assert svg.verdict(True).split()[1] == "right"
    assert svg.verdict(False).split()[1] == "wrong"
    assert svg.verdict(True).split()[0] != svg.verdict(False).split()[0]
