"""The still pictures of chapter 4: each is checked against facts worked out by loops of its own."""

import re
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest

from cpcore import Visibility, contiguous, from_lengths, schedule, striped, zigzag
from cpcore.ui.figure import Figure
from cpcore.ui.message_figures import message_panels
from cpcore.ui.ring_figures import CELL, relation_panels, shard_timeline
from cpcore.ui.svg import rank_color

PAST = np.tri(8, dtype=bool)
CYCLE = [(rank, "send", (rank + 1) % 4) for rank in range(4)]
TICKS = [[(0, 1), (2, 3)], [(1, 2), (3, 0)]]


def pictures(figure: Figure) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(figure.html).iter("svg"))


def cells(figure: Figure) -> list[list[str]]:
    rows = ElementTree.fromstring(figure.html).iter("tr")
    return [["".join(cell.itertext()) for cell in row] for row in rows]


def words(picture: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in picture.iter("text")]


def timeline(layout, rule=None) -> Figure:
    return shard_timeline(schedule(layout, rule or Visibility(), backward=False))


def by_rank(layout) -> np.ndarray:
    """Who sees whom when rank numbers decide: full below, a local triangle, nothing above."""
    seen = np.zeros((layout.seq_len, layout.seq_len), bool)
    for rank, mine in enumerate(layout.owned):
        for owner, theirs in enumerate(layout.owned):
            for a, i in enumerate(mine):
                for b, j in enumerate(theirs):
                    seen[i, j] = owner < rank or (owner == rank and b <= a)
    return seen


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("cut", [contiguous, zigzag, striped])
def test_the_timeline_tells_owner_verdict_and_receiver_of_every_turn(cut, ranks):
    layout = cut(16, ranks)
    table = cells(timeline(layout))
    assert table[0] == ["", *(f"step {step}" for step in range(ranks))]
    for rank in range(ranks):
        for step in range(ranks):
            owner = (rank - step) % ranks
            pairs = [j <= i for i in layout.owned[rank] for j in layout.owned[owner]]
            kind = "full" if all(pairs) else "partial" if any(pairs) else "skipped"
            sent = f", sent to {(rank + 1) % ranks}" if step < ranks - 1 else ""
            assert table[1 + rank][1 + step] == f"shard {owner}, {kind}{sent}"


def test_the_timeline_draws_a_bar_for_every_message_even_where_the_block_is_skipped():
    (picture,) = pictures(timeline(contiguous(8, 4)))
    bars = [r.get("fill") for r in picture.iter("rect") if r.get("height") == "6"]
    assert Counter(bars[:-1]) == Counter(rank_color(owner) for owner in range(4) for _ in range(3))
    assert picture.get("aria-label", "").count("6 of 16 blocks are skipped") == 1


@pytest.mark.parametrize("ranks", [0, 5])
def test_the_timeline_refuses_what_does_not_fit(ranks):
    events = schedule(contiguous(8, ranks), None, backward=False) if ranks else []
    with pytest.raises(ValueError, match="events: expected 1 to 4 ranks, one per step"):
        shard_timeline(events)


def test_the_timeline_refuses_shards_in_pieces_and_missing_turns():
    events = list(schedule(contiguous(8, 2), None, backward=False))
    with pytest.raises(ValueError, match="events: expected"):
        shard_timeline(events[:-1])


@pytest.mark.parametrize("layout", [contiguous(8, 2), zigzag(8, 2), from_lengths([5, 0, 3])])
def test_the_relation_counts_and_marks_every_pair(layout):
    seen = by_rank(layout)
    figure = relation_panels(layout, PAST, {"by rank": seen, "right": PAST})
    wrong, right = pictures(figure)
    future, lost = (seen & ~PAST).sum(), (PAST & ~seen).sum()
    assert f"sees the future: {future}" in words(wrong)
    assert f"misses the past: {lost}" in words(wrong)
    assert ("by rank: ✗ wrong" in words(wrong)) == bool(future + lost)
    assert "right: ✓ right" in words(right)
    table = cells(figure)
    order = [int(p) for p in layout.permutation]
    for n, i in enumerate(order):
        for m, j in enumerate(order):
            past = "seen" if seen[i, j] else "missed"
            ahead = "seen, wrongly" if seen[i, j] else "hidden"
            assert table[1 + n][1 + m] == (past if j <= i else ahead)


def test_future_and_past_are_counted_apart():
    panels = {"self only": np.eye(8, dtype=bool), "all": np.ones((8, 8), bool)}
    alone, everything = pictures(relation_panels(zigzag(8, 2), PAST, panels))
    assert {"sees the future: 0", "misses the past: 28"} <= set(words(alone))
    assert {"sees the future: 28", "misses the past: 0"} <= set(words(everything))


def test_pairs_stand_in_stored_order_in_the_color_of_the_keys_owner():
    layout = zigzag(8, 2)
    (picture,) = pictures(relation_panels(layout, PAST, {"right": PAST}))
    order, owner = [0, 1, 6, 7, 2, 3, 4, 5], {0: 0, 1: 0, 6: 0, 7: 0, 2: 1, 3: 1, 4: 1, 5: 1}
    squares = [r for r in picture.iter("rect") if r.get("width") == str(int(CELL))][:64]
    for n, square in enumerate(squares):
        i, j = order[n // 8], order[n % 8]
        assert square.get("fill") == (rank_color(owner[j]) if j <= i else "none")
        place = float(square.get("x", "")), float(square.get("y", ""))
        assert place == (54 + CELL * (n % 8), 60 + CELL * (n // 8))


@pytest.mark.parametrize(
    ("layout", "relation", "message"),
    [
        (contiguous(9, 2), np.tri(9, dtype=bool), "layout: expected 1 to 8 positions"),
        (contiguous(4, 2), np.tri(3, dtype=bool), r"right: expected shape \(4, 4\)"),
    ],
)
def test_a_relation_that_does_not_fit_is_refused(layout, relation, message):
    with pytest.raises(ValueError, match=message):
        relation_panels(layout, relation, {})


def test_a_hang_is_drawn_as_arrows_to_the_rank_that_is_waited_for():
    (picture,) = pictures(message_panels({"all send first": ([], CYCLE)}, ranks=4))
    assert "✗ stuck, 0 delivered" in words(picture)
    assert [w for w in words(picture) if w.startswith("→")] == ["→1", "→2", "→3", "→0"]
    discs = {
        int(t.text or ""): (float(c.get("cx", "")), float(c.get("cy", "")))
        for c, t in zip(
            picture.iter("circle"),
            [t for t in picture.iter("text") if (t.text or "").isdigit()],
            strict=True,
        )
    }
    drawn = []
    for path in picture.iter("path"):
        x0, y0, x1, y1 = map(float, re.findall(r"[\d.]+", path.get("d", ""))[:4])
        ends = [
            min(discs, key=lambda r: (discs[r][0] - x) ** 2 + (discs[r][1] - y) ** 2)
            for x, y in ((x0, y0), (x1, y1))
        ]
        drawn.append(tuple(ends))
    assert drawn == [(rank, peer) for rank, _, peer in CYCLE]


def test_a_rank_that_waits_for_nothing_in_a_hang_is_done():
    waiting = [(1, "recv", 0), (2, "recv", 1), (2, "send", 3), (3, "send", 0)]
    figure = message_panels({"rank 0 left": ([[(0, 1)]], waiting)}, ranks=4)
    (picture,) = pictures(figure)
    assert {"done", "←0", "←1 →3", "→0"} <= set(words(picture))
    assert "✗ stuck, 1 delivered" in words(picture)
    told = picture.get("aria-label", "")
    assert all(f"rank {rank} for rank {peer}" in told for rank, _, peer in waiting)
    assert ["rank 0 left, tick 1", "0 to 1"] in cells(figure)
    assert ["rank 0 left, rank 2 waits", "send 3"] in cells(figure)


def test_ticks_show_both_ends_of_every_message_and_who_waits():
    (picture,) = pictures(message_panels({"alternating": (TICKS, [])}, ranks=4))
    shown = words(picture)
    assert "✓ done, ticks: 2" in shown
    assert [w for w in shown if "→" in w or "←" in w] == [
        "→1", "←3", "←0", "→2", "→3", "←1", "←2", "→0",
    ]  # fmt: skip
    chain = [[(3, 0)], [(2, 3)], [(1, 2)], [(0, 1)]]
    (picture,) = pictures(message_panels({"one by one": (chain, [])}, ranks=4))
    assert words(picture).count("waits") == 2 + 2 + 1
    assert "one by one: 4 messages in 4 ticks." in picture.get("aria-label", "")


def test_both_calls_of_a_tick_share_a_cell():
    ticks = [[(rank, (rank + 1) % 3) for rank in range(3)]]
    (picture,) = pictures(message_panels({"together": (ticks, [])}, ranks=3))
    assert {"→1 ←2", "→2 ←0", "→0 ←1"} <= set(words(picture))


@pytest.mark.parametrize(
    ("panels", "ranks", "message"),
    [
        ({}, 1, "ranks: expected 2 to 4"),
        ({}, 5, "ranks: expected 2 to 4"),
        ({"long": ([[(0, 1)]] * 6, [])}, 2, "long: expected at most 5 ticks, received 6"),
    ],
)
def test_messages_that_do_not_fit_are_refused(panels, ranks, message):
    with pytest.raises(ValueError, match=message):
        message_panels(panels, ranks=ranks)


def test_letters_survive_a_phone_and_nothing_leaves_the_picture():
    figures = [
        timeline(contiguous(8, 4)),
        relation_panels(zigzag(8, 2), PAST, {"by rank number": by_rank(zigzag(8, 2))}),
        message_panels({"a": ([], CYCLE), "b": (TICKS, []), "c": ([[(0, 1)]] * 5, [])}, ranks=4),
    ]
    for picture in (p for figure in figures for p in pictures(figure)):
        width, height = map(float, picture.get("viewBox", "").split()[2:])
        assert width == 330
        assert float(picture.get("font-size", "")) >= 12 * 330 / 302
        for node in picture.iter("rect"):
            x, y, w, h = (float(node.get(name, "")) for name in ("x", "y", "width", "height"))
            assert x >= 0
            assert y >= 0
            assert x + w <= width
            assert y + h <= height
        for text in picture.iter("text"):
            assert 10 <= float(text.get("y", "")) <= height - 3
            assert 0 <= float(text.get("x", "")) < width


def test_pictures_need_no_ids():
    assert " id=" not in timeline(contiguous(8, 4)).html
    assert " id=" not in message_panels({"a": ([], CYCLE)}, ranks=4).html
