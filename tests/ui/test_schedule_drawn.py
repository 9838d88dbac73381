"""The schedule explorer's picture: squares, rings, arrows, bars and blocks say what the table says.

The table is recomputed elsewhere; here the picture is read back and compared with it.
"""

import math
import random
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from cpcore.ui import schedule_explorer
from cpcore.ui.svg import RANK_COLORS
from tests.support.explorables import tables

SEED, SAMPLES = 20261129, 150
STATES = random.Random(SEED).sample(list(schedule_explorer.states()), SAMPLES)
BAR = re.compile(r"M([\d.]+) ([\d.]+)h([\d.]+)v14h-")


def drawn(state):
    """The two pictures, and the table by rank."""
    _, *parts = schedule_explorer.lines(**state)
    root = ElementTree.fromstring(f"<div>{''.join(parts)}</div>")
    ring, grid = root.iter("svg")
    return ring, grid, tables("\n".join(parts))


def place(rank: int, ranks: int, radius: float) -> tuple[float, float]:
    """Clockwise from the top."""
    angle = 2 * math.pi * rank / ranks
    return 165 + radius * math.sin(angle), 122 - radius * math.cos(angle)


def near(a, b) -> bool:
    return math.dist(a, b) < 6


@pytest.mark.parametrize("state", STATES, ids=str)
def test_each_rank_has_outside_it_the_square_or_ring_that_the_table_names(state):
    ring, _, (by_rank, *_) = drawn(state)
    ranks = int(state["ranks"])
    texts = [(t.text, (float(t.get("x")), float(t.get("y")))) for t in ring.iter("text")]
    squares = [
        ((float(b.get("x")) + 10, float(b.get("y")) + 10), b.get("fill")) for b in ring.iter("rect")
    ]
    rings = [
        ((float(c.get("cx")), float(c.get("cy"))), c.get("stroke"))
        for c in ring.iter("circle")
        if c.get("stroke-width") == "5"
    ]
    home = state["direction"] == "backward"
    for r in range(ranks):
        spot, has = place(r, ranks, 104), by_rank[str(r)]["has"]
        if has == "none":
            has = f"gradient {r}" if home else "none 0"
        kind, owner = has.split()
        color = RANK_COLORS[int(owner)]
        assert [c for at, c in squares if near(at, spot)] == [color] * (kind == "shard")
        assert [c for at, c in rings if near(at, spot)] == [color] * (kind == "gradient")
        assert [t for t, at in texts if near(at, spot)] == [owner] * (kind != "none")
        assert [t for t, at in texts if near(at, place(r, ranks, 72))] == [str(r)]


@pytest.mark.parametrize("state", STATES, ids=str)
def test_an_arrow_leads_clockwise_from_each_rank_that_sends(state):
    ring, _, (by_rank, *_) = drawn(state)
    ranks = int(state["ranks"])
    arcs = re.compile(r"M([\d.]+) ([\d.]+)A72 72 0 0 1 ([\d.]+) ([\d.]+)")
    found = [arc for p in ring.iter("path") for arc in arcs.findall(p.get("d", ""))]
    sends = [r for r in range(ranks) if by_rank[str(r)]["sends to"] != "none"]
    assert len(found) == len(sends)
    for r, (x0, y0, x1, y1) in zip(sends, found, strict=True):
        after, before = place(r, ranks, 72), place(int(by_rank[str(r)]["sends to"]), ranks, 72)
        assert 9 < math.dist((float(x0), float(y0)), after) < 17
        assert 9 < math.dist((float(x1), float(y1)), before) < 17


@pytest.mark.parametrize("state", STATES, ids=str)
def test_bars_are_pairs_in_the_rank_s_color_and_waiting_behind_them(state):
    ring, _, (by_rank, *_) = drawn(state)
    bars = [
        (float(y), float(x), float(w), p.get("fill"))
        for p in ring.iter("path")
        for x, y, w in BAR.findall(p.get("d", ""))
    ]
    peak = max(
        int(row["pairs"])
        for step in range(8)
        for row in drawn({**state, "direction": "forward", "step": step})[2][0].values()
    )
    for r in range(int(state["ranks"])):
        row, y = by_rank[str(r)], 282 + 22 * r
        mine, wait = (164 * int(row[head]) / peak for head in ("pairs", "waits"))
        wanted = [(28, mine, RANK_COLORS[r])] * (mine > 0) + [(28 + mine, wait, "none")] * (
            wait > 0
        )
        found = sorted(bar[1:] for bar in bars if bar[0] == y)
        assert len(found) == len(wanted)
        for got, want in zip(found, wanted, strict=True):
            assert got[:2] == pytest.approx(want[:2], abs=0.11)
            assert got[2] == want[2]


@pytest.mark.parametrize("state", STATES, ids=str)
def test_every_block_is_drawn_by_its_verdict_and_as_done_now_or_to_come(state):
    _, grid, (by_rank, _, plan) = drawn(state)
    ranks = int(state["ranks"])
    side = min(52, 208 // ranks)
    done = {c for g in grid.iter("g") if g.get("opacity") for c in g}
    paths = [p for p in grid.iter("path") if p.get("d", "").startswith("M")]
    for r in range(ranks):
        for o in range(ranks):
            x, y = 30 + side * o, 92 + side * r
            verdict, step = plan[f"queries of {r}"][f"keys of {o}"].split(", step ")
            over = state["step"] > int(step)
            now = by_rank[str(r)]["computes"] != "none" and state["step"] == int(step)
            outline = f"M{x} {y}h{side}v{side}h-{side}z"
            assert any(p.get("stroke-width") == "3" for p in paths if outline in p.get("d")) == now
            dotted = any(p.get("stroke-dasharray") for p in paths if outline in p.get("d"))
            assert dotted == (not over and not now)
            color = RANK_COLORS[o]
            full = [p for p in paths if p.get("d") == outline and p.get("fill") == color]
            half = [p for p in paths if p.get("d") == f"M{x} {y}l{side} {side}h-{side}z"]
            hatch = [p for p in paths if p.get("d").startswith(f"M{x} {y + side // 2}l")]
            shown = {"full": full, "partial": half, "skip": hatch}
            for kind, found in shown.items():
                assert len(found) == (kind == verdict and (over or now)), (r, o, kind)
                assert all((p in done) == over for p in found)
                assert kind == "skip" or all(p.get("fill") == color for p in found)


@pytest.mark.parametrize("ranks", ["2", "3", "4", "8"])
@pytest.mark.parametrize("layout", ["contiguous", "zigzag", "striped"])
def test_the_strip_colors_each_position_by_its_owner(layout, ranks):
    from tests.support.schedules import owner_of

    _, grid, _ = drawn({"layout": layout, "ranks": ranks})
    cell = 328 / 48
    seen = {}
    for path in grid.iter("path"):
        for x, w in re.findall(r"M([\d.]+) 18h([\d.]+)v16", path.get("d", "")):
            first = round((float(x) - 1) / cell)
            for p in range(first, first + round(float(w) / cell)):
                assert p not in seen
                seen[p] = path.get("fill")
    assert seen == {p: RANK_COLORS[owner_of(layout, p, int(ranks))] for p in range(48)}


def test_zigzag_and_striped_balance_a_causal_ring_and_contiguous_does_not():
    """The lesson of the picture: the same pairs, another pace."""
    last = {"visibility": "causal", "ranks": "4", "step": 15}
    pace = {}
    for layout in ("contiguous", "zigzag", "striped"):
        _, _, (_, whole, _) = drawn({**last, "layout": layout})
        total, elapsed, _ = map(int, whole["ring"].values())
        assert total == 48 * 49 // 2
        pace[layout] = elapsed
    assert pace["contiguous"] > 1.5 * total / 4
    assert pace["zigzag"] == total / 4
    assert total / 4 <= pace["striped"] < 1.2 * total / 4


def test_striped_runs_are_dealt_in_turn():
    plan = drawn({"layout": "striped", "ranks": "3"})[2][2]
    owns = [plan[f"queries of {r}"]["owns"] for r in range(3)]
    assert all(b[0] > a[0] for a, b in pairwise(owns))
