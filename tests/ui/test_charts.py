"""The two charts: what they draw is where the numbers say, and the table says the same."""

import math
import re

import pytest

from cpcore.ui.charts import MARKS, Bar, Figure, Series, bar_chart, line_chart
from tests.support.figures import cells, parsed

ONE = Series("state", [1, 8, 512], [1e-16, 1e-14, 1e-10])
TWO = Series("pair", [1, 512], [1e-15, 1e-9], mark="square", hollow=True)


def chart(*series: Series) -> Figure:
    return line_chart(series or (ONE, TWO), x_label="chunks", y_label="error", alt="Error grows.")


def marks(figure: Figure, name: str) -> list[tuple[float, float]]:
    """Places of one kind of mark; the last one is the legend's."""
    found = re.findall(
        rf'd="{re.escape(MARKS[name])}" transform="translate\(([\d.]+) ([\d.]+)\)', figure.html
    )
    return [(float(x), float(y)) for x, y in found]


def test_points_lie_at_equal_steps_for_equal_ratios():
    (x0, y0), (x1, y1), (x2, y2), _legend = marks(chart(ONE), "circle")
    assert (x1 - x0) / (x2 - x0) == pytest.approx(math.log(8) / math.log(512), abs=0.001)
    assert (y0 - y1) / (y0 - y2) == pytest.approx(2 / 6, abs=0.001)
    assert y0 > y1 > y2, "a larger number is drawn higher"


def test_the_table_holds_every_number_and_leaves_missing_points_empty():
    assert cells(chart()) == [
        ["chunks", "state", "pair"],
        ["1", "1.0e−16", "1.0e−15"],
        ["8", "1.0e−14", ""],
        ["512", "1.0e−10", "1.0e−09"],
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (8256.0, "8,256"), (33554432.0, "33,554,432"), (0.5, "0.5"), (2 / 3, "0.667")],
)
def test_bars_show_whole_numbers_in_full(value, shown):
    figure = bar_chart([Bar("a", value)], unit="n", alt="One.")
    assert cells(figure)[1] == ["a", shown]
    assert f">{shown}</text>" in figure.html


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1"),
        (0.846, "0.85"),
        (23.48, "23"),
        (512.4, "512"),
        (2e4, "2.0e+04"),
        (3e-8, "3.0e−08"),
    ],
)
def test_the_table_uses_an_exponent_only_where_needed(value, shown):
    assert cells(chart(Series("one", [1], [value])))[1] == ["1", shown]


def test_every_x_is_a_tick_and_decades_enclose_every_y():
    texts = [t.text for t in parsed(chart()).iter("text")]
    assert {"1", "8", "512", "10⁻¹⁶", "10⁻⁸"} <= set(texts)
    for _, y in marks(chart(), "circle") + marks(chart(), "square"):
        assert 0 < y < 330


@pytest.mark.parametrize("low", [1e-17, 3e-17, 1e-8, 0.5, 1.0, 1000.0])
@pytest.mark.parametrize("span", [1.0, 2.0, 1e3, 1e15])
def test_the_vertical_axis_has_few_labels_and_contains_its_points(low, span):
    figure = chart(Series("one", [1, 2], [low, low * span]))
    labels = re.findall(r">10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)<", figure.html)
    assert 2 <= len(labels) <= 7
    assert all(34 <= y <= 244 for _, y in marks(figure, "circle")[:-1])


def test_noise_in_the_last_bits_of_a_power_of_ten_adds_no_decade():
    clean, noisy = (
        chart(Series("one", [1, 2], [1e-3 * (1 - noise), 1e3 * (1 + noise)]))
        for noise in (0.0, 1e-14)
    )
    assert noisy.html == clean.html


def test_series_differ_by_mark_and_name_and_never_by_color():
    html = chart().html
    assert "state" in html
    assert "pair" in html
    assert html.count(MARKS["circle"]) == 4
    assert html.count(MARKS["square"]) == 3
    assert "#" not in html
    assert "stroke-dasharray" in html, "a hollow series is dashed as well"


def test_points_are_joined_from_left_to_right():
    scrambled = Series("state", [512, 1, 8], [1e-10, 1e-16, 1e-14])
    assert chart(scrambled).html == chart(ONE).html


def test_bars_are_as_long_as_their_values_and_listed_in_the_table():
    figure = bar_chart([Bar("keys", 4000.0), Bar("state", 1000.0, rank=1)], unit="n", alt="Two.")
    widths = [float(b.get("width")) for b in parsed(figure).iter() if b.tag.endswith("rect")]
    assert widths[0] == 4 * widths[1]
    assert cells(figure) == [["", "n"], ["keys", "4,000"], ["state", "1,000"]]
    assert "#E69F00" in figure.html, "rank 1 keeps its color"


def test_bars_of_zero_length_are_drawn_as_nothing():
    figure = bar_chart([Bar("none", 0.0)], unit="n", alt="Nothing.")
    assert 'width="0"' in figure.html
    assert cells(figure)[1] == ["none", "0"]


def test_names_are_escaped():
    figure = chart(Series("<b>&", [1], [1.0]))
    assert "<b>&" not in figure.html
    assert any("<b>&" in row for row in cells(figure))


def test_a_chart_has_alt_text_or_is_refused():
    assert 'aria-label="Error grows."' in chart().html
    with pytest.raises(ValueError, match="alt: expected a sentence"):
        line_chart([ONE], x_label="x", y_label="y", alt=" ")
    with pytest.raises(ValueError, match="alt: expected a sentence"):
        bar_chart([Bar("a", 1.0)], unit="n", alt="")


@pytest.mark.parametrize(
    ("x", "y", "mark", "message"),
    [
        ([1, 2], [1.0], "circle", "equally many points, received 2 and 1"),
        ([], [], "circle", "equally many points, received 0 and 0"),
        ([1], [0.0], "circle", "positive finite numbers, received 0.0"),
        ([1], [math.nan], "circle", "positive finite numbers, received nan"),
        ([math.inf], [1.0], "circle", "positive finite numbers, received inf"),
        ([1], [1.0], "star", "expected one of circle, square"),
    ],
)
def test_a_series_that_a_log_axis_cannot_show_is_refused(x, y, mark, message):
    with pytest.raises(ValueError, match=message):
        Series("s", x, y, mark)


def test_empty_charts_and_negative_bars_are_refused():
    with pytest.raises(ValueError, match="series: expected at least one"):
        line_chart([], x_label="x", y_label="y", alt="a")
    with pytest.raises(ValueError, match="bars: expected at least one"):
        bar_chart([], unit="n", alt="a")
    with pytest.raises(ValueError, match="value: expected a finite number from 0"):
        Bar("a", -1.0)
