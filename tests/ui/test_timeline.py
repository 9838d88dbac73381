"""The timeline: boxes are as long as the work, white fills the rest, and the words say the same."""

import re
from xml.etree import ElementTree

import pytest

from cpcore.ui.figure import Figure
from cpcore.ui.svg import RANK_COLORS
from cpcore.ui.timeline import BAR, LEFT, RIGHT, ROW, TOP, timeline

# Two steps on three ranks, then one on which nothing happens at all, then one for rank 2 alone.
WORK = [[10, 20, 40], [30, 30, 5], [0, 0, 0], [0, 0, 25]]
SLOWEST = [40, 30, 0, 25]
LEVEL = [[20, 20, 20], [15, 15, 15]]
RECT = re.compile(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h")


def drawn(panels=None, **more) -> Figure:
    return timeline(panels or {"plain": WORK}, **({"alt": "A test."} | more))


def pictures(figure: Figure) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(figure.html).iter("svg"))


def boxes(picture: ElementTree.Element, fill: str, height: float = BAR) -> list[list[float]]:
    """(x, y, width) of the boxes of one fill and height."""
    return [
        [float(x), float(y), float(w)]
        for path in picture.iter("path")
        if path.get("fill") == fill
        for x, y, w, h in RECT.findall(path.get("d", ""))
        if float(h) == height
    ]


def lines(picture: ElementTree.Element, fill: str) -> dict[int, list[tuple[float, float]]]:
    """The boxes of one fill by rank, from their height on the page."""
    found: dict[int, list[tuple[float, float]]] = {}
    for path in picture.iter("path"):
        if path.get("fill") == fill:
            for x, y, w, h in RECT.findall(path.get("d", "")):
                if float(h) == BAR:
                    rank = (float(y) - TOP) / ROW
                    found.setdefault(int(rank), []).append((float(x), float(w)))
    return found


def words(picture: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in picture.iter("text")]


def cells(figure: Figure) -> list[list[str]]:
    root = ElementTree.fromstring(figure.html)
    return [["".join(c.itertext()) for c in row] for row in root.iter("tr")]


def expected(rank: int, unit: float, lasts: list[float]) -> tuple[list, list]:
    """Compute and waiting of a rank as (x, width), by a loop over the steps."""
    busy, idle, start = [], [], LEFT
    for row, last in zip(WORK, lasts, strict=True):
        if row[rank]:
            busy.append((start, unit * row[rank]))
        if last > row[rank]:
            idle.append((start + unit * row[rank], unit * (last - row[rank])))
        start += unit * last
    return busy, idle


@pytest.mark.parametrize("transfer", [None, [50, 10, 0, 0]])
def test_compute_is_as_long_as_the_work_and_white_fills_the_step(transfer):
    lasts = SLOWEST if transfer is None else [50, 30, 0, 25]
    (picture,) = pictures(drawn(transfer=transfer))
    unit = (RIGHT - LEFT) / sum(lasts)
    white = lines(picture, "#fff")
    for rank in range(3):
        busy, idle = expected(rank, unit, lasts)
        assert lines(picture, RANK_COLORS[rank]) == {
            rank: [pytest.approx(pair, abs=0.11) for pair in busy]
        }
        assert white.get(rank, []) == [pytest.approx(pair, abs=0.11) for pair in idle]


def test_each_rank_has_a_message_of_the_given_length_below_its_line():
    (picture,) = pictures(drawn(transfer=[50, 10, 0, 0]))
    unit = (RIGHT - LEFT) / 105
    found = boxes(picture, "currentColor", 3)
    starts, lengths = [LEFT, LEFT + 50 * unit], [50 * unit, 10 * unit]
    for rank in range(3):
        here = found[2 * rank : 2 * rank + 2]
        assert [x for x, _, _ in here] == pytest.approx(starts, abs=0.06)
        assert [w for _, _, w in here] == pytest.approx(lengths, abs=1.6)
        line = TOP + ROW * rank  # from here to line + ROW, compute on top
        assert all(line + BAR < y < line + ROW - 3 for _, y, _ in here)
    assert len(found) == 6
    assert not boxes(pictures(drawn())[0], "currentColor", 3)


def test_all_panels_share_one_scale():
    long, short = pictures(drawn({"plain": WORK, "level": LEVEL}))
    unit = (RIGHT - LEFT) / 95
    assert boxes(long, RANK_COLORS[0])[0][2] == pytest.approx(10 * unit, abs=0.06)
    assert boxes(short, RANK_COLORS[0])[0][2] == pytest.approx(20 * unit, abs=0.06)
    assert not lines(short, "#fff")


def test_a_number_stands_in_a_box_that_is_wide_enough_for_it():
    told = words(pictures(drawn({"plain": [[100, 1]] * 9}))[0])  # 31 units wide: three digits fit
    assert told.count("100") == 9
    assert told.count("1") == 2  # the name of step 1 and of rank 1
    told = words(pictures(drawn({"plain": [[100, 1]] * 12}))[0])  # 23 units wide: they do not
    assert "100" not in told


def test_a_number_has_the_ink_that_reads_on_its_rank_s_color():
    (picture,) = pictures(drawn({"plain": [[77, 77]]}))
    inks = [g.get("fill") for g in picture.iter("g") if [t.text for t in g] == ["77"]]
    assert inks == ["#fff", "#111"]  # on dark blue and on orange


def test_steps_are_named_unless_they_are_too_short():
    told = words(pictures(drawn())[0])
    assert [told.count(str(step)) for step in range(4)] == [2, 2, 1, 1]  # 0 to 2 name ranks, too


def test_title_alt_text_and_table_hold_the_same_numbers():
    figure = drawn(transfer=[50, 10, 0, 0], unit="units")
    (picture,) = pictures(figure)
    assert words(picture)[0] == "plain: 105 units"
    wanted = "A test. plain: 105 units long; the ranks wait 65, 55, 35."
    assert picture.get("aria-label") == wanted
    assert cells(figure) == [
        ["plain, step", "rank 0", "rank 1", "rank 2", "message", "lasts"],
        ["0", "10", "20", "40", "50", "50"],
        ["1", "30", "30", "5", "10", "30"],
        ["2", "0", "0", "0", "0", "0"],
        ["3", "0", "0", "25", "0", "25"],
        ["computes", "40", "50", "70", "60", "105"],
        ["waits", "65", "55", "35", "", ""],
    ]


def test_the_legend_names_messages_only_where_there_are_some():
    assert "message" in words(pictures(drawn(transfer=[1, 0, 0, 0]))[0])
    assert "message" not in words(pictures(drawn())[0])


def test_work_of_nothing_is_drawn_without_a_box():
    (picture,) = pictures(drawn({"idle": [[0, 0]]}))
    assert not RECT.findall(ElementTree.tostring(picture).decode())


@pytest.mark.parametrize(
    ("panels", "more", "fault"),
    [
        ({}, {}, "panels: expected at least one, received none"),
        ({"x": []}, {}, r"panels: expected steps of 1 to 8 ranks, received steps of \[\]"),
        ({"x": [[1], [1, 2]]}, {}, r"received steps of \[1, 2\]"),
        ({"x": [[1] * 9]}, {}, r"received steps of \[9\]"),
        ({"x": [[]]}, {}, r"received steps of \[0\]"),
        ({"x": [[-1]]}, {}, "expected finite numbers from 0, received -1.0"),
        ({"x": [[float("nan")]]}, {}, "received nan"),
        ({"x": [[1]]}, {"transfer": [float("inf")]}, "received inf"),
        ({"x": [[1]]}, {"transfer": [1, 2]}, "transfer: expected 1 numbers, received 2"),
        ({"x": [[1]]}, {"alt": " "}, "alt: expected a sentence about the picture"),
    ],
)
def test_a_timeline_refuses_what_it_cannot_draw(panels, more, fault):
    with pytest.raises(ValueError, match=fault):
        timeline(panels, **({"alt": "A test."} | more))
