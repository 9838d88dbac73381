"""The pictures of training: every number that is drawn is one of the report."""

import json
import re

import pytest

from cpcore.ui.charts import MARKS
from cpcore.ui.training_curves import FLOOR, loss_curves, weight_differences
from tests.support.figures import cells, parsed, pictures

LOSSES = [6.0, 5.0, 4.5, 4.0, 3.5, 3.0]
REPORT = {
    "reference": {"losses": LOSSES, "fell": 0.5, "moved": 0.02},
    "runs": [
        {"ranks": 1, "switch": None, "losses": LOSSES,
         "differences": {"0": 0.0, "1": 0.0, "6": 2e-16}},
        {"ranks": 4, "switch": None, "losses": LOSSES,
         "differences": {"0": 0.0, "1": 1e-16, "6": 3e-16}},
        {"ranks": 4, "switch": "mean_of_means", "losses": [7.0] * 6,
         "differences": {"0": 0.0, "1": 2e-5, "6": 4.7e-4}},
    ],
}  # fmt: skip


def places(html: str, name: str) -> list[tuple[float, float]]:
    found = re.findall(
        rf'd="{re.escape(MARKS[name])}" transform="translate\(([\d.]+) ([\d.]+)\)', html
    )
    return [(float(x), float(y)) for x, y in found]


@pytest.mark.parametrize("draw", [loss_curves, weight_differences])
def test_a_picture_is_well_formed_and_the_same_from_a_file(draw) -> None:
    figure = draw(REPORT)
    assert figure == draw(json.loads(json.dumps(REPORT)))
    assert " id=" not in figure.html
    assert len(list(parsed(figure).iter("details"))) == 1
    (picture,) = pictures(figure)
    assert len(picture.get("aria-label", "")) > 30
    left, right, height = 0, *map(float, picture.get("viewBox", "").split()[2:])
    for x, y in [p for name in MARKS for p in places(figure.html, name)]:
        assert left <= x <= right
        assert 0 <= y <= height


def test_marks_of_all_correct_runs_lie_on_the_line_of_one_process() -> None:
    html = loss_curves(REPORT).html
    (path,) = re.findall(r'd="M([\d. L]+)" fill="none" stroke="currentColor"/>', html)
    line = [tuple(map(float, point.split())) for point in path.split("L")]
    assert len(line) == len(LOSSES)
    first, second = places(html, "circle"), places(html, "square")
    assert first[:-1] == line[0::2], "the last mark is the legend's"
    assert second[:-1] == line[1::2]
    heights = [y for _, y in line]
    assert heights == sorted(heights), "a smaller loss is drawn lower"
    drop = (heights[1] - heights[0]) / (heights[-1] - heights[0])
    assert drop == pytest.approx((LOSSES[0] - LOSSES[1]) / (LOSSES[0] - LOSSES[-1]), abs=0.01)


def test_the_table_of_losses_holds_every_run() -> None:
    rows = cells(loss_curves(REPORT))
    assert rows[0] == ["step", "one process", "ranks: 1", "ranks: 4"]
    assert rows[1] == ["1", "6", "6", "6"]
    assert rows[3] == ["3", "4.5", "4.5", "4.5"]


def test_differences_show_wrong_runs_hollow_and_zero_at_the_floor() -> None:
    figure = weight_differences(REPORT)
    assert cells(figure) == [
        ["steps", "correct, ranks: 1", "correct, ranks: 4", "mean of means, ranks: 4"],
        ["1", f"{FLOOR:.1e}".replace("-", "−"), "1.0e−16", "2.0e−05"],
        ["6", "2.0e−16", "3.0e−16", "4.7e−04"],
    ]
    assert figure.html.count("stroke-dasharray") == 1
    assert "wrong ones end above 4e-04" in figure.html


def test_a_report_without_a_correct_run_is_refused() -> None:
    with pytest.raises(ValueError, match="report: expected a run without a switch"):
        loss_curves({**REPORT, "runs": REPORT["runs"][2:]})
