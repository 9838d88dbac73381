"""The still pictures of chapter 7: what they draw is what they were given, in words as well."""

import re
from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from cpcore import Dropout, contiguous, striped, zigzag
from cpcore.ui.drops import GRID, drop_grids
from cpcore.ui.figure import Figure
from cpcore.ui.svg import FONT, WIDTH, filled, rank_color
from cpcore.ui.training import STAGES, label_strip, step_map, token_weights
from tests.support.figures import cells, parsed, pictures, words

FAIR, SKEWED = [Fraction(1, 4)] * 4, [*[Fraction(1, 6)] * 3, Fraction(1, 2)]
RANKS = [0, 0, 0, 1]
TOKENS, FIRST, LATE = ([[0, 1, 6, 7], [2, 3, 4, 5]], [[1, 2, 7, -1], [3, 4, 5, 6]],
                       [[1, 6, 7, -1], [3, 4, 5, -1]])  # fmt: skip
EIGHT = np.arange(8)
KEPT = Dropout(0.3, 6).keep(0, 0, EIGHT[:, None], EIGHT)


def weights(ways=None) -> Figure:
    return token_weights(RANKS, {"fair": FAIR, "skewed": SKEWED} if ways is None else ways)


def grids() -> Figure:
    return drop_grids({"two": (KEPT, zigzag(8, 2)), "four": (KEPT, striped(8, 4))})


FIGURES = [step_map, weights, lambda: label_strip(TOKENS, FIRST, LATE), grids]


def drawn(picture: ElementTree.Element) -> str:
    return ElementTree.tostring(picture, encoding="unicode")


@pytest.mark.parametrize("draw", FIGURES)
def test_a_picture_is_well_formed_repeatable_and_needs_no_id(draw):
    figure = draw()
    assert figure == draw()
    assert " id=" not in figure.html
    assert len(list(parsed(figure).iter("details"))) == 1
    for picture in pictures(figure):
        assert len(picture.get("aria-label", "")) > 30
        assert float(picture.get("viewBox", "").split()[2]) == WIDTH
        assert all(float(n.get("font-size", FONT)) >= 12 * 330 / 302 for n in picture.iter())


@pytest.mark.parametrize("draw", FIGURES)
def test_every_text_and_box_lies_inside_the_picture(draw):
    """Measured in DejaVu Sans, the widest usual font."""
    for picture in pictures(draw()):
        height = float(picture.get("viewBox", "").split()[3])
        anchors = {t: g.get("text-anchor") for g in picture.iter("g") for t in g.iter("text")}
        for text in picture.iter("text"):
            font = FontProperties(family="DejaVu Sans", weight=text.get("font-weight", "normal"))
            wide = TextPath((0, 0), text.text, size=FONT, prop=font).get_extents().width
            shift = {"middle": 0.5, "end": 1.0}.get(
                text.get("text-anchor") or anchors.get(text) or "", 0.0
            )
            left = float(text.get("x")) - shift * wide
            assert left >= 0, text.text
            assert left + wide <= WIDTH, text.text
            assert FONT - 3 <= float(text.get("y")) <= height - 2, text.text
        for rect in picture.iter("rect"):
            x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
            assert x >= 0
            assert x + w <= WIDTH
            assert y >= 0
            assert y + h <= height


def test_the_step_map_draws_every_stage_in_order_with_what_crosses():
    (picture,) = pictures(step_map())
    told = [word for word in words(picture) if word not in ("sequence", "0", "1")]
    assert told == [word for stage, _, crosses in STAGES for word in (stage, crosses)]
    assert cells(step_map())[1:] == [list(stage) for stage in STAGES]


def test_the_step_map_has_one_row_before_the_split_two_exchanges_and_two_sums():
    kinds = [kind for _, kind, _ in STAGES]
    assert kinds[0] == "whole"
    assert [kinds.count(kind) for kind in ("whole", "exchange", "sum")] == [1, 2, 2]
    (picture,) = pictures(step_map())
    shown = drawn(picture)
    assert shown.count(f'fill="{rank_color(0)}"') == shown.count(f'fill="{rank_color(1)}"') == 7
    assert shown.count('stroke-width="1.3"') == 2 * kinds.count("exchange")  # an arrow each way
    assert len(re.findall(r'h12M[\d. ]+v12"', shown)) == kinds.count("sum")  # a plus


def test_pieces_of_a_bar_are_as_long_as_their_weights():
    (picture,) = pictures(weights())
    rects = [(r.get("fill"), float(r.get("width"))) for r in picture.iter("rect")]
    for (color, width), weight, rank in zip(rects, FAIR + SKEWED, RANKS * 2, strict=True):
        assert color == rank_color(rank)
        assert width == pytest.approx((WIDTH - 2) * float(weight), abs=0.06)


def test_only_equal_weights_are_called_right():
    (picture,) = pictures(weights())
    assert "fair ✓ right" in words(picture)
    assert "skewed ✗ wrong" in words(picture)
    assert cells(weights())[1:] == [
        ["fair", *["1/4"] * 4, "✓ right"],
        ["skewed", "1/6", "1/6", "1/6", "1/2", "✗ wrong"],
    ]


@pytest.mark.parametrize(
    "ways", [{}, {"short": FAIR[:3]}, {"heavy": [Fraction(1, 2)] * 4}, {"none": []}]
)
def test_token_weights_refuses_what_is_no_mean(ways):
    with pytest.raises(ValueError, match="ways: expected"):
        weights(ways)


def test_a_label_strip_crosses_exactly_the_labels_that_differ():
    (picture,) = pictures(label_strip(TOKENS, FIRST, LATE))
    crossed = [word for word in words(picture) if word.startswith("✗ ") and word != "✗ wrong"]
    assert crossed == ["✗ 6", "✗ –"]
    table = cells(label_strip(TOKENS, FIRST, LATE))[1:]
    flat = [[x for rank in ids for x in rank] for ids in (TOKENS, FIRST, LATE)]
    for row, token, one, other in zip(table, *flat, strict=True):
        assert row[1] == str(token)
        assert row[2] == ("–" if one < 0 else str(one))
        assert row[3] == ("–" if other < 0 else str(other))
        assert row[4] == ("✓ right" if one == other else "✗ wrong")


def test_a_rank_whose_labels_agree_is_right():
    (picture,) = pictures(label_strip(TOKENS, FIRST, [LATE[0], FIRST[1]]))
    assert words(picture).count("✗ wrong") == words(picture).count("✓ right") == 1


@pytest.mark.parametrize("late", [[[1], [2]], [LATE[0], LATE[1][:3]]])
def test_a_label_strip_refuses_lists_of_other_lengths(late):
    with pytest.raises(ValueError, match="tokens: expected 1 to 6 per rank, received"):
        label_strip(TOKENS, FIRST, late)


def test_a_label_strip_refuses_another_number_of_ranks():
    with pytest.raises(ValueError, match="zip"):
        label_strip(TOKENS, FIRST, LATE[:1])


def test_a_label_strip_refuses_more_than_fits():
    with pytest.raises(ValueError, match="tokens: expected 1 to 6 per rank, received 0: "):
        label_strip([range(7)], [range(7)], [range(7)])


@pytest.mark.parametrize("layout", [contiguous(8, 2), zigzag(8, 2), striped(8, 4)])
def test_kept_probabilities_are_filled_in_their_key_owners_color_and_dropped_ones_crossed(layout):
    (picture,) = pictures(drop_grids({"panel": (KEPT, layout)}))
    places = set()
    for rank in range(layout.cp_size):
        path = next(p for p in picture.iter("path") if p.get("fill") == rank_color(rank))
        for x, y in re.findall(r"M([\d.]+) ([\d.]+)h", path.get("d")):
            key, query = int((float(x) - 25) / GRID), int((float(y) - 47) / GRID)
            assert key in layout.owned[rank]
            places.add((query, key))
    assert places == {(i, j) for i in range(8) for j in range(i + 1) if KEPT[i, j]}
    crosses = next(p for p in picture.iter("path") if p.get("fill") == "none")
    lost = {
        (int((float(y) - 52) / GRID), int((float(x) - 30) / GRID))
        for x, y in re.findall(r"M([\d.]+) ([\d.]+)l", crosses.get("d"))
    }
    assert lost == {(i, j) for i in range(8) for j in range(i + 1) if not KEPT[i, j]}
    assert len(lost) == 10


def test_the_discs_of_a_drop_grid_name_the_owner_of_each_position():
    layout = striped(8, 4)
    (picture,) = pictures(drop_grids({"panel": (KEPT, layout)}))
    numbers = [int(word) for word in words(picture)[1:]]
    assert numbers == [i % 4 for i in range(8) for _ in (0, 1)]
    for circle, rank in zip(picture.iter("circle"), numbers, strict=True):
        assert f'fill="{circle.get("fill")}"' in filled(rank)


def test_the_table_of_a_drop_grid_lists_the_dropped_keys():
    for i, row in enumerate(cells(grids())[1:]):
        dropped = [str(j) for j in range(i + 1) if not KEPT[i, j]]
        assert row == [f"query {i}", *[", ".join(dropped) or "none"] * 2]


@pytest.mark.parametrize(
    "panels",
    [
        {},
        {"x": (KEPT[:7], contiguous(8, 2))},
        {"x": (KEPT, contiguous(9, 2))},
        {"x": (KEPT, contiguous(8, 2)), "y": (KEPT[:4, :4], contiguous(4, 2))},
        {"x": (np.ones((13, 13), bool), contiguous(13, 2))},
        {"x": (np.ones((0, 0), bool), contiguous(0, 2))},
    ],
)
def test_drop_grids_refuses_what_is_no_square_of_the_layout(panels):
    with pytest.raises(ValueError, match=r"panels: expected \(S, S\) arrays and layouts"):
        drop_grids(panels)
