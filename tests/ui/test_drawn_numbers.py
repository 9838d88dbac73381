"""The pictures agree with the tables: bars, discs, bars of shares and cells are where they must be.

The tables themselves are recomputed elsewhere; here the picture is read back and compared.
"""

import re
from xml.etree import ElementTree

import pytest

from cpcore.ui import merge_stepper, network_lab, split_explorer
from cpcore.ui.svg import RANK_COLORS
from tests.support.explorables import number, tables

BAR = re.compile(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-")
SPLITS, SCORES, VALUES = (control.values for control in split_explorer.controls)
PIXEL = 0.11  # coordinates have one decimal, tables three


def panels(lines: tuple[str, ...]) -> list[ElementTree.Element]:
    """The pictures of a drawing."""
    return list(ElementTree.fromstring(f"<div>{''.join(lines)}</div>").iter("svg"))


def bars(panel: ElementTree.Element) -> list[tuple[float, float, float, float, str]]:
    """(x, y, width, height, fill) of every filled rectangle in a path, left to right."""
    found = []
    for path in panel.iter("path"):
        for place in BAR.findall(path.get("d", "")):
            found.append((*map(float, place), path.get("fill", "")))
    return sorted(found)


def texts(panel: ElementTree.Element) -> list[str]:
    """Every text of a picture."""
    return ["".join(t.itertext()) for t in panel.iter("text")]


def cells(lines: tuple[str, ...], which: int, row: str) -> list[float]:
    """A row of numbers of one of the tables."""
    return [number(t) for t in tables("".join(lines[1:]))[which][row].values() if t != "none"]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("scores", SCORES)
def test_split_bars_are_as_high_as_their_weights_in_their_owner_s_color(split, scores):
    lines = split_explorer.lines(split=split, scores=scores)
    weights, _ = panels(lines)
    owners = [int(n) for n in cells(lines, 0, "rank")]
    alone, exact = cells(lines, 0, "weight alone"), cells(lines, 0, "exact weight")
    unit = 54 / max(alone)
    for base, shown in ((86, alone), (180, exact)):
        row = {
            round((x - 48) / 36): bar for x, *bar in bars(weights) if round(bar[0] + bar[2]) == base
        }
        for key, weight in enumerate(shown):
            if key not in row:
                assert weight * unit < PIXEL
                continue
            assert row[key][2] == pytest.approx(weight * unit, abs=PIXEL + unit * 0.0006)
            assert row[key][3] == RANK_COLORS[owners[key]]


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("scores", ["rising", "peak", "future"])
def test_split_shares_and_answers_are_drawn_to_scale(split, scores, values):
    lines = split_explorer.lines(split=split, scores=scores, values=values)
    _, answers = panels(lines)
    for y, row in ((18, "say in mean"), (66, "share")):
        drawn = {fill: width for _, top, width, _, fill in bars(answers) if top == y}
        for rank, share in enumerate(cells(lines, 1, row)):
            assert drawn.get(RANK_COLORS[rank], 0) == pytest.approx(328 * share, abs=0.3)
    discs = [float(c.get("cx", "nan")) for c in answers.iter("circle")]
    assert discs == pytest.approx([136 + 20 * v for v in cells(lines, 1, "output")], abs=PIXEL)
    mean, exact = cells(lines, 2, "result")[:2]
    diamonds = [
        float(path.get("d", "").split()[0][1:]) + 8
        for path in answers.iter("path")
        if path.get("d", "").endswith("l8 -8l8 8l-8 8z")
    ]
    assert diamonds == pytest.approx([136 + 20 * mean, 136 + 20 * exact], abs=PIXEL)


@pytest.mark.parametrize("step", range(6))
@pytest.mark.parametrize("order", ["given", "reversed"])
@pytest.mark.parametrize("preset", merge_stepper.controls[0].values)
def test_merge_bars_are_the_keys_parts_of_the_sum_in_order_of_arrival(preset, order, step):
    lines = merge_stepper.lines(preset=preset, order=order, step=step)
    arrivals, _ = panels(lines)
    keys = tables("".join(lines[1:]))[0]
    turns = [0, 1, 2, 3] if order == "given" else [3, 2, 1, 0]
    drawn = {round(x): (h, fill) for x, y, _, h, fill in bars(arrivals) if round(y + h) == 196}
    for place in range(8):
        key = 2 * turns[place // 2] + place % 2
        weight = number(keys[str(key)]["exp(score \N{MINUS SIGN} max)"])
        x = 48 + 34 * place + 2 * (place // 2) + 17 - 11
        height, fill = drawn.get(x, (0, RANK_COLORS[key // 2]))
        assert height == pytest.approx(58 * weight, abs=PIXEL + 58 * 0.0006)
        assert fill == RANK_COLORS[key // 2]


@pytest.mark.parametrize("step", range(1, 5))
@pytest.mark.parametrize("preset", merge_stepper.controls[0].values)
def test_merge_cells_and_factors_are_those_of_the_table(preset, step):
    lines = merge_stepper.lines(preset=preset, step=step)
    shown = texts(panels(lines)[1])
    summary = tables("".join(lines[1:]))[1]
    before, block, after = summary.values()
    numbers = [t for t in shown if t.removeprefix("\N{MINUS SIGN}")[0].isdigit() or "inf" in t]
    cells_shown = [t for t in numbers if " " not in t]
    expected = [row[head] for row in (before, block, after) for head in ("max", "sum", "output")]
    assert cells_shown == expected
    factors = [t.split()[1] for t in shown if t.startswith("\N{MULTIPLICATION SIGN}")]
    assert factors == [before["factor"], block["factor"]]


@pytest.mark.parametrize("step", range(5))
@pytest.mark.parametrize("w", [-1, 0, 2])
def test_network_circles_show_a_value_only_once_the_cursor_is_there(step, w):
    lines = network_lab.lines(w=w, step=step)
    graph, merged = panels(lines)
    nodes, _, sums, _ = tables("".join(lines[1:]))
    shown = texts(graph)
    for name in ("product", "sum", "sigmoid"):
        assert nodes[name]["value"] in shown
    hidden = max(0, 3 - step)
    assert shown.count("?") == hidden
    for row in sums.values():
        for head in ("max", "sum", "output"):
            assert row[head] == "?" or row[head] in texts(merged)
