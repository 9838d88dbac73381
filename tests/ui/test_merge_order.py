"""The merge-order explorer: what the orders teach, and a picture that agrees with its table."""

import math
import re
from itertools import product
from xml.etree import ElementTree

import pytest

from cpcore.ui import merge_order
from cpcore.ui.order_facts import COUNTS, EPS, ORDERS, PRECISIONS, arrival, facts


def pictures(**state) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(f"<div>{merge_order.draw(**state)}</div>").iter("svg"))


def test_a_chain_of_many_chunks_is_worse_than_a_tree_in_every_precision():
    for precision in PRECISIONS:
        errors = facts(precision, 512).errors
        assert errors["tree"] < min(errors["chain"], errors["reverse"], errors["random"])


def test_the_error_follows_the_precision_of_the_state():
    for order, count in product(ORDERS, COUNTS):
        errors = [facts(precision, count).errors[order] for precision in PRECISIONS]
        for error, eps in zip(errors, EPS.values(), strict=True):
            assert 0.1 * eps < error < 20 * eps, (order, count)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("order", ORDERS)
def test_bars_lie_on_one_log_axis_and_the_chosen_order_is_outlined(order, precision):
    for count in COUNTS:
        _, panel = pictures(order=order, precision=precision, chunks=str(count))
        bars = [
            (float(w), float(p.get("stroke-width", 0)))
            for p in panel.iter("path")
            for w in re.findall(r"M1 [\d.]+h([\d.]+)v14", p.get("d", ""))
        ]
        for name, (width, edge) in zip(ORDERS, bars, strict=True):
            error = facts(precision, count).errors[name]
            assert width == pytest.approx(328 * (math.log10(error) + 17) / 17, abs=0.06)
            assert (edge == 3) == (name == order)


@pytest.mark.parametrize("order", ORDERS)
def test_the_drawing_shows_the_chunks_as_they_arrive_and_seven_merges(order):
    panel, _ = pictures(order=order)
    leaves = [t.text for t in panel.iter("text") if t.get("y") == "53.5"]
    assert leaves == [str(c) for c in arrival(order, 8)]
    shape = next(p.get("d") for p in panel.iter("path") if p.get("fill") == "none")
    joins = re.findall(r"M([\d.]+) [\d.]+V([\d.]+)H([\d.]+)V", shape)
    assert len(joins) == 7
    depth = len({y for _, y, _ in joins})
    assert depth == (3 if order == "tree" else 7), "a tree is as deep as a logarithm"
