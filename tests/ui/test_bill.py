"""The memory bill: still picture and explorable draw the numbers that they are given."""

import re
from xml.etree import ElementTree

import pytest

from cpcore.planner import MemoryItem
from cpcore.ui import bill_explorer
from cpcore.ui.memory_figures import ACROSS, GIB, OF_MODEL, OF_TOKENS, memory_bill
from tests.support.errors import refused
from tests.support.explorables import tables

NAMES = ("state", "sample", "spare")
MODEL_SHADE, TOKEN_SHADE = (re.findall(r'opacity="([.\d]+)"', s)[0] for s in (OF_MODEL, OF_TOKENS))
SAMPLE = list(bill_explorer.states())[::23]


def items(*sizes: float) -> list[MemoryItem]:
    """Lines of so many GiB; only the second is divided."""
    rows = zip(NAMES, sizes, strict=True)
    return [MemoryItem(n, 0, int(size * GIB), n == "sample") for n, size in rows]


BILLS = {"whole": items(10, 30, 0), "cut": items(10, 5, 1)}


def picture_of(html: str, which: int = 0) -> ElementTree.Element:
    return list(ElementTree.fromstring(f"<div>{html}</div>").iter("svg"))[which]


def bars(picture: ElementTree.Element) -> list[tuple[float, float, float, str]]:
    """(x, y, width, shade) of every bar of 18 px height, in order."""
    found = [r.attrib for r in picture.iter("rect") if r.get("height") == "18"]
    return [(*(float(r[k]) for k in ("x", "y", "width")), r["fill-opacity"]) for r in found]


def marks(picture: ElementTree.Element) -> list[float]:
    """Where the lines that mark the room stand; the last is the legend's."""
    return [float(re.findall(r"M([\d.]+)", p.get("d"))[0]) for p in picture.iter("path")]


def shown(**more) -> str:
    return memory_bill(BILLS, **({"room_bytes": 20 * GIB, "alt": "One fits."} | more)).html


def test_parts_lie_end_to_end_on_one_scale_and_the_shade_says_what_is_divided():
    unit = ACROSS / 40
    drawn = bars(picture_of(shown()))
    assert [x for x, *_ in drawn] == pytest.approx([0, 10 * unit, 0, 10 * unit, 15 * unit], abs=0.1)
    widths = [width / unit for _, _, width, _ in drawn]
    assert widths == pytest.approx([10, 30, 10, 5, 1], abs=0.02)
    shades = [MODEL_SHADE, TOKEN_SHADE, MODEL_SHADE, TOKEN_SHADE, MODEL_SHADE]
    assert [shade for *_, shade in drawn] == shades
    first, second = sorted({y for _, y, *_ in drawn})
    assert [y for _, y, *_ in drawn] == [first, first, second, second, second]


def test_the_room_is_marked_at_each_bar_on_the_same_scale():
    assert marks(picture_of(shown()))[:2] == pytest.approx([ACROSS / 2] * 2, abs=0.1)
    small = memory_bill({"cut": BILLS["cut"]}, room_bytes=64 * GIB, alt="It fits.").html
    assert marks(picture_of(small))[0] == pytest.approx(ACROSS)


def test_titles_alt_text_and_table_say_the_totals_and_what_fits():
    html = shown()
    words = [t.text for t in picture_of(html).iter("text")]
    assert "whole: 40.0 GiB, does not fit" in words
    assert "cut: 16.0 GiB, fits" in words
    assert "memory of a device, 20.0 GiB" in words
    alt = picture_of(html).get("aria-label")
    assert alt == "One fits. whole: 40.0 GiB, cut: 16.0 GiB."
    (table,) = tables(html)
    assert table["sample"] == {"whole": "30.00", "cut": "5.00"}
    assert table["total"] == {"whole": "40.00", "cut": "16.00"}
    assert table["fits"] == {"whole": "no", "cut": "yes"}


def test_a_bill_that_is_exactly_as_large_as_the_device_fits():
    (table,) = tables(shown(room_bytes=16 * GIB))
    assert table["fits"] == {"whole": "no", "cut": "yes"}
    assert "cut: 16.0 GiB, fits" in shown(room_bytes=16 * GIB)


def test_a_part_has_its_number_in_the_middle_below_it_if_there_is_room():
    texts = [(float(t.get("x")), t.text) for t in picture_of(shown()).iter("text")]
    unit = ACROSS / 40
    numbers = [(x, text) for x, text in texts if text in "123"]
    wanted = [(5, "1"), (25, "2"), (5, "1"), (12.5, "2")]  # the third part is 8 px wide
    assert [x for x, _ in numbers] == pytest.approx([x * unit for x, _ in wanted], abs=0.1)
    assert [text for _, text in numbers] == [text for _, text in wanted]


@pytest.mark.parametrize(
    ("bills", "received"),
    [
        ({}, "[]"),
        ({"a": []}, "[[]]"),
        ({"a": items(1, 2, 3), "b": items(1, 2, 3)[:2]},
         "[['state', 'sample', 'spare'], ['state', 'sample']]"),
    ],
)  # fmt: skip
def test_bills_must_list_the_same_parts(bills, received):
    with refused("bills", "the same parts in each, at least one", received):
        memory_bill(bills, room_bytes=1, alt="x")


def test_no_room_and_no_alt_text_are_refused():
    with refused("room_bytes", "a number above 0", "0"):
        shown(room_bytes=0)
    with pytest.raises(ValueError, match="alt: expected"):
        shown(alt=" ")


def number(text: str) -> float:
    return float(text.split()[0].replace(",", ""))


@pytest.mark.parametrize("state", SAMPLE, ids=str)
def test_bars_of_a_condition_are_to_scale_and_marked_by_whether_it_holds(state):
    _, *parts = bill_explorer.lines(**state)
    html = "\n".join(parts)
    picture, (_, conditions) = picture_of(html, 1), tables(html)
    lengths = [float(r.get("width")) for r in picture.iter("rect")]
    looks = [r.get("fill") for r in picture.iter("rect")]
    assert looks == ["currentColor", "none"] * 4
    words = [t.text for t in picture.iter("text")]
    for i, (name, row) in enumerate(conditions.items()):
        have, need = number(row["have"]), number(row["need"])
        pair = [220 * value / max(have, need) for value in (have, need)]
        assert lengths[2 * i : 2 * i + 2] == pytest.approx(pair, abs=0.1 + 220 * 0.011)
        mark = "\N{CHECK MARK}" if row["holds"] == "yes" else "\N{BALLOT X}"
        assert words[3 * i : 3 * i + 3] == [f"{mark} {name}", row["have"], row["need"]]


def test_every_decision_is_reached_somewhere():
    captions = [bill_explorer.lines(**state)[0] for state in bill_explorer.states()]
    for words in ("use it.", "cut, and do more.", "condition 3 does not", "conditions 1, 2, 3, 4"):
        assert any(words in caption for caption in captions), words
