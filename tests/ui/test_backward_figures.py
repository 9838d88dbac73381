"""The still pictures of chapter 6: the trip home told again with numbers, the grid by a loop."""

from collections.abc import Callable

import numpy as np
import pytest

from cpcore import Layout, Visibility, contiguous, schedule, zigzag
from cpcore.replay import return_gradients
from cpcore.schedule import PROTOCOLS
from cpcore.ui.backward import CHIP, Stop, row_and_column, trip_home, trips
from cpcore.ui.figure import Figure
from cpcore.ui.svg import RANK_COLORS, rank_color
from tests.support.figures import parsed, pictures, words

CAUSAL = Visibility()
RINGS = {p: list(schedule(contiguous(24, 4), CAUSAL, protocol=p)) for p in PROTOCOLS[:2]}


def found(
    protocol: str, ranks: int, cut: Callable[[int, int], Layout] = contiguous
) -> list[list[Stop]]:
    return trips(schedule(cut(24, ranks), CAUSAL, protocol=protocol))


def tables(figure: Figure) -> list[list[list[str]]]:
    return [
        [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
        for table in parsed(figure).iter("table")
    ]


@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_stop_holds_the_shares_whose_numbers_the_played_return_adds_up(
    protocol: str, ranks: int
) -> None:
    """Rank r's share is the number 2**r, so a sum tells whose shares are in it."""
    layout = contiguous(24, ranks)
    events = [e for e in schedule(layout, CAUSAL, protocol=protocol) if e.phase == "return"]
    steps = sorted({event.step for event in events})
    told = found(protocol, ranks)
    assert {len(stops) for stops in told} == {len(steps) + 1}
    for hop, step in enumerate([*steps, ranks]):
        shares = [[(np.full((n, 1), 2.0**r),) for n in layout.lengths] for r in range(ranks)]
        return_gradients([e for e in events if e.step < step], shares)
        for owner in range(ranks):
            stop = told[owner][hop]
            assert shares[stop.rank][owner][0][0, 0] == sum(2**r for r in stop.shares)


def test_a_ring_adds_one_share_per_hop_and_a_full_return_starts_at_the_owner() -> None:
    for ranks in (2, 3, 4, 5):
        for owner in range(ranks):
            after = [(owner + n) % ranks for n in range(1, ranks)]
            ring, full = (found(p, ranks)[owner] for p in ("ring", "ring_full_return"))
            assert [stop.rank for stop in ring] == [*after, owner]
            assert [stop.rank for stop in full] == [owner, *after, owner]
            assert [stop.shares for stop in ring[:-1]] == [
                tuple(after[: n + 1]) for n in range(ranks - 1)
            ]
            assert ring[-1].shares == (*after, owner)
            assert full[-1].shares == full[-2].shares == (owner, *after)


def test_a_rank_has_nothing_to_add_where_a_double_loop_finds_no_visible_pair() -> None:
    for cut, ranks in ((contiguous, 3), (contiguous, 4), (zigzag, 4)):
        owned = cut(24, ranks).owned
        for owner, stops in enumerate(found("ring", ranks, cut)):
            for stop in stops:
                blind = tuple(
                    r
                    for r in stop.shares
                    if not any(j <= i for i in owned[r] for j in owned[owner])
                )
                assert stop.nothing == blind
    assert any(stop.nothing for stops in found("ring", 4) for stop in stops)
    assert not any(stop.nothing for stops in found("ring", 4, zigzag) for stop in stops)


def test_a_stream_without_a_return_or_in_pieces_is_refused() -> None:
    layout = contiguous(24, 4)
    with pytest.raises(ValueError, match="events: expected a return of gradients, received none"):
        trips(schedule(layout, CAUSAL, backward=False))
    with pytest.raises(ValueError, match="events: expected whole shards, received pieces"):
        trips(schedule(layout, CAUSAL, max_block=3))


def test_every_share_is_a_chip_in_its_ranks_color_or_dotted_if_it_is_nothing() -> None:
    for (name, events), picture in zip(RINGS.items(), pictures(trip_home(RINGS)), strict=True):
        stops = [stop for of_owner in trips(events) for stop in of_owner]
        wanted = [
            rank_color(rank) if rank not in stop.nothing else "none"
            for stop in stops
            for rank in stop.shares
        ]
        drawn = [rect.get("fill") for rect in picture.iter("rect")]
        assert drawn == [*wanted, rank_color(1), "none"], name  # and two in the legend
        dotted = [r for r in picture.iter("rect") if r.get("stroke-dasharray")]
        assert len(dotted) == wanted.count("none") + 1
        hops = len(trips(events)[0]) - 1
        assert f"{name}: {hops} hops" in words(picture)
        assert words(picture).count("home") == 1


def test_the_chips_of_a_stop_are_centered_under_its_rank() -> None:
    for picture, events in zip(pictures(trip_home(RINGS)), RINGS.values(), strict=True):
        discs = [float(c.get("cx", "nan")) for c in picture.iter("circle") if c.get("r") == "9"]
        lefts = [float(rect.get("x", "nan")) for rect in picture.iter("rect")]
        for stop, middle in zip((s for of in trips(events) for s in of), discs, strict=True):
            chips = [lefts.pop(0) for _ in stop.shares]
            # coordinates are written with one decimal
            assert (chips[0] + chips[-1] + CHIP) / 2 == pytest.approx(middle, abs=0.11)


def test_the_table_of_the_trip_says_who_holds_which_shares() -> None:
    ring, full = tables(trip_home(RINGS))
    assert ring[0] == ["ring, gradient of", "hop 1", "hop 2", "hop 3", "home"]
    assert ring[1] == [
        "rank 0", "rank 1: 1", "rank 2: 1 + 2", "rank 3: 1 + 2 + 3", "rank 0: 1 + 2 + 3 + 0",
    ]  # fmt: skip
    assert ring[4][1:3] == ["rank 0: zeros; nothing from 0", "rank 1: zeros; nothing from 0, 1"]
    assert ring[4][4] == "rank 3: 3; nothing from 0, 1, 2"
    assert full[2] == [
        "rank 1", "rank 1: 1", "rank 2: 1 + 2", "rank 3: 1 + 2 + 3",
        "rank 0: 1 + 2 + 3; nothing from 0", "rank 1: 1 + 2 + 3; nothing from 0",
    ]  # fmt: skip


def test_an_arrow_joins_two_stops_only_where_the_sum_travels_on() -> None:
    for protocol, arrows in (("ring", 12), ("ring_full_return", 16), ("direct", 4)):
        events = schedule(contiguous(24, 4), CAUSAL, protocol=protocol)
        (picture,) = pictures(trip_home({protocol: events}))
        lines = [path for path in picture.iter("path") if path.get("stroke-width") == "1.3"]
        assert len(lines) == arrows


@pytest.mark.parametrize(("ranks", "rank", "owner"), [(2, 1, 0), (4, 2, 1), (5, 4, 4), (5, 0, 0)])
def test_a_row_is_computed_on_one_rank_and_a_column_on_each_rank_that_sees_it(
    ranks: int, rank: int, owner: int
) -> None:
    figure = row_and_column(ranks, rank, owner)
    row, column = pictures(figure)
    on = [[word for word in words(picture) if word.startswith("on ")] for picture in (row, column)]
    assert on[0] == [f"on {rank}" for k in range(ranks) if k <= rank]
    assert on[1] == [f"on {q}" for q in range(ranks) if q >= owner]
    assert row.get("aria-label", "").startswith(f"dQ of rank {rank}: one row")
    assert column.get("aria-label", "").startswith(f"dK, dV of rank {owner}: one column")
    ((_, of_row, of_column),) = tables(figure)
    assert of_row[1:] == [
        f"rank {rank}", ", ".join(f"keys of {k}" for k in range(rank + 1)), f"rank {rank}",
    ]  # fmt: skip
    assert of_column[1] == f"rank {owner}"
    assert of_column[2:] == [
        ", ".join(f"{what}{q}" for q in range(owner, ranks)) for what in ("queries of ", "rank ")
    ]


def test_only_the_chosen_blocks_have_full_color() -> None:
    row, column = pictures(row_and_column(4, 2, 1))
    for picture, chosen in ((row, [0, 1]), (column, [1, 1])):  # the third one is a triangle
        faded = [g for g in picture.iter("g") if g.get("opacity") == ".3"]
        assert len(faded) == 16 - 3
        inside = {id(rect) for g in faded for rect in g.iter("rect")}
        plain = [r.get("fill") for r in picture.iter("rect") if id(r) not in inside]
        assert [f for f in plain if f != "none"] == [RANK_COLORS[k] for k in chosen]


@pytest.mark.parametrize(
    ("ranks", "rank", "owner"), [(1, 0, 0), (6, 0, 0), (4, 4, 0), (4, 0, -1), ("4", 0, 0)]
)
def test_a_grid_too_small_too_large_or_without_these_ranks_is_refused(
    ranks: int, rank: int, owner: int
) -> None:
    with pytest.raises(ValueError, match="ranks: expected 2 to 5 with rank and owner in it"):
        row_and_column(ranks, rank, owner)


def test_everything_stays_inside_its_picture() -> None:
    """Eight units a letter are more than the widest usual font takes for words of this length."""
    figures = [trip_home(RINGS), *(row_and_column(n, n - 1, 0) for n in (2, 5))]
    for picture in (p for figure in figures for p in pictures(figure)):
        _, _, width, height = map(float, picture.get("viewBox", "").split())
        for rect in picture.iter("rect"):
            x, y, w, h = (float(rect.get(k, "nan")) for k in ("x", "y", "width", "height"))
            assert 0 <= x <= x + w <= width
            assert 0 <= y <= y + h <= height
        for text in picture.iter("text"):
            reach = 8.0 * len(text.text or "")
            x = float(text.get("x", "nan")) - (reach / 2 if text.get("text-anchor") else 0)
            assert x + 0.5 >= 0, text.text
            assert x + reach <= width + 0.5, text.text
            assert float(text.get("y", "nan")) <= height - 3


def test_drawing_twice_gives_the_same_text_and_no_element_ids() -> None:
    for draw in (lambda: trip_home(RINGS), lambda: row_and_column(4, 2, 1)):
        assert draw() == draw()
        assert " id=" not in draw().html
