"""The loss explorer: bars that agree with their table, and what a reader is asked to find."""

from fractions import Fraction
from xml.etree import ElementTree

import pytest

from cpcore.loss import LossSum, mean_loss
from cpcore.training_pitfalls import mean_of_rank_means
from cpcore.ui import loss_explorer
from cpcore.ui.averaging import BAR, LABELS, LOSSES, facts
from cpcore.ui.svg import WIDTH, rank_color

STATES = list(loss_explorer.states())


def panels(state):
    return list(ElementTree.fromstring(f"<div>{loss_explorer.draw(**state)}</div>").iter("svg"))


@pytest.mark.parametrize("state", STATES, ids=lambda state: "-".join(state.values()))
def test_a_bar_per_token_is_as_high_as_its_weight_beside_the_right_one(state):
    known = facts(**state)
    bars = list(panels(state)[0].iter("rect"))
    if known.spoiled:
        assert bars == []
        return
    owners = [rank for rank, count in enumerate(known.counts) for _ in range(count)]
    top = max(*known.weights, known.right)
    for bar, rank in zip(bars, owners, strict=True):
        assert bar.get("fill") == rank_color(rank)
        height = float(BAR * known.weights[rank] / top)
        assert float(bar.get("height")) == pytest.approx(height, abs=0.06)
        assert float(bar.get("x")) >= 0
        assert float(bar.get("x")) + float(bar.get("width")) <= WIDTH - 30  # room for the label
    line = next(p for p in panels(state)[0].iter("path") if p.get("stroke-dasharray"))
    floor = float(bars[0].get("y")) + float(bars[0].get("height"))
    y = float(line.get("d").split()[1].split("H")[0])
    assert floor - y == pytest.approx(float(BAR * known.right / top), abs=0.16)


@pytest.mark.parametrize("labels", LABELS)
def test_two_losses_are_those_of_the_package(labels):
    pairs = zip(LABELS[labels], LOSSES, strict=False)
    parts = [LossSum(float(count * loss), count) for count, loss in pairs]
    right = facts(labels, "all", "sum", "no")
    assert float(right.loss(right.weights)) == pytest.approx(mean_loss(parts), rel=1e-15)
    wrong = facts(labels, "own", "mean", "no")
    if not wrong.spoiled:
        loss = float(wrong.loss(wrong.weights))
        assert loss == pytest.approx(mean_of_rank_means(parts), rel=1e-15)


def test_the_first_picture_is_the_failure_of_chapter_7():
    known = facts(**loss_explorer.defaults())
    assert known.counts == (3, 1)
    assert known.weights == [Fraction(1, 6), Fraction(1, 2)]
    assert known.loss(known.weights) == 6


def test_exactly_two_settings_are_right_for_every_row_of_labels():
    settings = {tuple(state.values())[1:] for state in STATES}
    always = {s for s in settings if all(facts(name, *s).ratios == {1} for name in LABELS)}
    assert always == {("all", "sum", "no"), ("all", "mean", "yes")}


def test_equal_counts_hide_the_own_mean():
    assert facts("4-4", "own", "mean", "no").ratios == {1}
    uneven = {Fraction(2, 3), Fraction(8, 9), Fraction(8, 3)}
    assert facts("4-3-1", "own", "mean", "no").ratios == uneven
