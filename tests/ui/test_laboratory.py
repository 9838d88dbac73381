"""The laboratory: its snapshots end where the run ends, its pictures agree with its tables."""

import math
import re
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest

from cpcore.ui import laboratory
from cpcore.ui.lab_events import snapshots
from cpcore.ui.lab_facts import FAULTS, LOST, facts
from cpcore.ui.svg import RANK_COLORS
from tests.support.explorables import tables
from tests.support.laboratories import events, seen_in

SPLITS, BLOCKS, RULES, PATHS, _ = (control.values for control in laboratory.controls)
STATES = list(product(SPLITS, BLOCKS, RULES, PATHS))
SAMPLE = list(laboratory.states())[::17]  # 17 and 25 have no common factor: every event occurs


@pytest.mark.parametrize("path", PATHS)
def test_the_last_snapshots_equal_the_run(path):
    """Two routes through the core: a fold over the events here, `simulate` for the results."""
    for split, block, rule in product(SPLITS, BLOCKS, RULES):
        state = (split, block, rule, path)
        run = facts(*state).run
        output, dk, dv = np.full((5, 2), np.nan), np.zeros((5, 2)), np.zeros((5, 2))
        for shot in snapshots(*state):
            lost = path == "lost" and (shot.event.rank, shot.event.owner) == LOST
            for row in shot.rows:
                if shot.event.phase == "forward":
                    output[row.position] = row.right
                elif shot.event.phase == "replay" and not lost:
                    dk[row.position] += row.left
                    dv[row.position] += row.right
        for mine, other in ((output, run.output), (dk, run.dk), (dv, run.dv)):
            np.testing.assert_allclose(mine, other, rtol=0, atol=1e-14, err_msg=str(state))


def test_every_path_but_the_correct_one_is_wrong_where_it_should_be():
    for split, block, rule, path in STATES:
        known = facts(split, block, rule, path)
        harmless = path == "local-masks" and rule == "full"
        assert known.right == (path == "correct" or harmless), (split, block, rule, path)


def test_a_lost_return_shows_equal_losses_beside_wrong_gradients():
    for split, block, rule in product(SPLITS, BLOCKS, RULES):
        lines = laboratory.lines(split=split, block=block, visibility=rule, path="lost")
        headline = tables("\n".join(lines[1:]))[2]["largest difference"]
        assert headline["output"] == headline["dQ"] == "rounding only"
        assert float(headline["dK"]) > 0.001
        assert float(headline["dV"]) > 0.001
        assert headline["loss"] == headline["reference loss"]
        assert "Equal losses beside wrong gradients" in "".join(lines)


def test_wrong_results_show_another_loss_too():
    """At the three decimals that the page prints."""
    for split, block, rule, path in STATES:
        drawn = "\n".join(
            laboratory.lines(split=split, block=block, visibility=rule, path=path)[1:]
        )
        row = tables(drawn)[2]["largest difference"]
        assert (row["loss"] == row["reference loss"]) == (row["output"] == "rounding only")
        assert ("The losses differ" in drawn) == (row["output"] != "rounding only")


def test_the_causal_return_that_is_not_lost_has_nothing_to_lose():
    """The reason for losing the one from rank 1: rank 0 sees no key of rank 1."""
    for shot in snapshots("2-3", "1", "causal", "correct"):
        if shot.event.phase == "return" and shot.event.rank == 0:
            assert all(not row.others and not np.any(row.left) for row in shot.rows)
    assert "nothing to lose" in laboratory.draw(path="lost")
    assert "nothing to lose" not in laboratory.draw(path="lost", visibility="full")


def test_messages_depend_on_the_largest_block_and_elements_do_not():
    for split in SPLITS:
        traffic = [
            tables("\n".join(laboratory.lines(split=split, block=block)[1:]))[3] for block in BLOCKS
        ]
        for name in traffic[0]:
            sent = {tuple(list(t[name].values())[:4]) for t in traffic}
            assert len(sent) == 1, name
        messages = [sum(int(r["messages sent"]) for r in t.values()) for t in traffic]
        assert 6 == messages[0] < messages[1] < messages[2]


def test_each_path_says_which_backward_goes_with_it_and_the_notes_are_there():
    notes = {path: laboratory.draw(path=path) for path in PATHS}
    assert set(PATHS) == set(FAULTS)
    for text in notes.values():
        assert text.count("Backward:") == 1
        for word in ("Loss.", "divided by 5", "Order.", "Scope.", "no claim about memory"):
            assert word in text
    assert "rank 1 to rank 0" in str(laboratory.controls[3].options)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("rule", RULES)
def test_bars_lie_on_one_log_axis_with_rounding_as_its_floor(rule, path):
    for split, block in product(SPLITS, BLOCKS):
        *_, panel = pictures(laboratory.lines(split=split, block=block, visibility=rule, path=path))
        known = facts(split, block, rule, path)
        found = {
            float(y): float(w)
            for p in panel.iter("path")
            for y, w in re.findall(r"M60 ([\d.]+)h([\d.]+)v14", p.get("d", ""))
        }
        for i, value in enumerate(known.differences):
            length = 0 if value < 1e-13 else 8 + 260 * (math.log10(value) + 5) / 6
            assert found.get(50.0 + 46 * i, 0) == pytest.approx(length, abs=0.06)
        words = [t.text for t in panel.iter("text") if "right" in t.text or "wrong" in t.text]
        wrongs = [value > 1e-13 for value in known.differences]
        assert ["wrong" in word for word in words[:4]] == wrongs


def pictures(lines) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(f"<div>{''.join(lines)}</div>").iter("svg"))


def test_the_matrix_shows_what_is_done_under_the_cursor_and_to_come():
    cell = re.compile(r"M(\d+) (\d+)h40v40h-40z")
    for state in SAMPLE:
        matrix, _ = pictures(laboratory.lines(**state))
        key = tuple(str(state[n]) for n in ("split", "block", "visibility", "path"))
        every = events(*key[:2])
        phase, now = every[min(state["event"], len(every) - 1)]
        order = [block for name, block in every if name == "forward"]
        parent = {child: p for p in matrix.iter() for child in p}
        drawn, faded, thick, dotted = {}, set(), [], []
        for path in matrix.iter("path"):
            shape, fill = path.get("d", ""), path.get("fill")
            if path.get("stroke-width") == "4":
                thick.append(shape)
            elif path.get("stroke-dasharray"):
                dotted.append(shape)
            elif y_of(shape) < 262:  # below lies the legend
                for x, y in cell.findall(shape):
                    spot = ((int(y) - 62) // 40, (int(x) - 66) // 40)
                    drawn[spot] = fill
                    if parent[path].get("opacity"):
                        faded.add(spot)
        assert thick == [frame(key[0], now)], state
        later = order[order.index(now) + 1 :]
        assert dotted == [frame(key[0], b) for b in later if phase == "forward"], state
        for block in order:
            rank, owner, keys = block
            for i, seen in seen_in(key, rank, keys).items():
                for j in keys:
                    color = RANK_COLORS[owner] if j in seen else "none"
                    hidden = phase == "forward" and block in later
                    assert drawn.get((i, j)) == (None if hidden else color), (state, i, j)
                    assert ((i, j) in faded) == (phase == "replay" and block in later)


def y_of(shape: str) -> int:
    return int(re.findall(r"M[\d.]+ ([\d.]+)", shape)[0])


def frame(split: str, block) -> str:
    """The outline of a block: the rank's queries down, its keys across."""
    rank, _, keys = block
    first, count = (0, int(split[0])) if rank == 0 else (int(split[0]), int(split[-1]))
    width, height = 40 * len(keys), 40 * count
    return f"M{66 + 40 * keys[0]} {62 + 40 * first}h{width}v{height}h-{width}z"
