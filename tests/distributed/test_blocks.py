"""How a block of scores is cut into pieces for fused kernels."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cpcore import (
    Layout,
    Visibility,
    contiguous,
    from_owned,
    per_document,
    striped,
    zigzag,
)
from cpcore.distributed.blocks import MANY_PIECES, Piece, cut
from cpcore.distributed.plan import plan
from tests.support.random_runs import LAYOUTS, RULES, drawn_layout, drawn_rule
from tests.support.relation import double_loop


def covered(pieces: list[Piece], shape: tuple[int, int], visible: NDArray[np.bool_]) -> str:
    """What is wrong with a cut: a pair in two pieces, a visible one in none, a hidden one seen."""
    times = np.zeros(shape, int)
    for piece in pieces:
        part = np.ones((piece.rows.stop - piece.rows.start, piece.keys.stop - piece.keys.start))
        if piece.kind == "triangle":
            if part.shape[0] != part.shape[1]:
                return f"a triangle of {part.shape}"
            part = np.tril(part)
        if piece.kind == "masked":
            part = part * visible[piece.rows, piece.keys]
        if 0 in part.shape:
            return f"an empty piece: {piece}"
        times[piece.rows, piece.keys] += part.astype(int)
    return "" if (times == visible).all() else f"{times}\nwhere\n{visible.astype(int)}"


@pytest.mark.parametrize("kind", RULES)
def test_every_visible_pair_is_in_exactly_one_piece(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    for trial in range(300):
        cp_size, seq_len = int(rng.integers(1, 5)), int(rng.integers(1, 25))
        cuts = np.sort(rng.integers(0, seq_len + 1, rng.integers(0, 4))).tolist()
        bounds = np.array([0, *cuts, seq_len])
        rule = drawn_rule(rng, kind, bounds) or {"causal": False}
        layout = drawn_layout(rng, LAYOUTS[trial % len(LAYOUTS)], cp_size, bounds)
        for q_pos in layout.owned:
            for k_pos in layout.owned:
                visibility = Visibility(**rule)
                pieces = cut(visibility, q_pos, k_pos, visibility.verdict(q_pos, k_pos))
                visible = double_loop(q_pos.tolist(), k_pos.tolist(), rule)
                assert covered(pieces, visible.shape, visible) == "", (rule, q_pos, k_pos)


def kinds(layout: Layout, visibility: Visibility | None) -> list[list[str]]:
    """The pieces of every turn of rank 1."""
    turns = plan(layout, visibility, "ring", 1).forward
    return [[piece.kind for piece in turn.pieces] for turn in turns]


@pytest.mark.parametrize(
    ("layout", "visibility", "wanted"),
    [
        (contiguous(12, 3), Visibility(), [["triangle"], ["full"], []]),
        (zigzag(24, 3), Visibility(), [["triangle"], ["full"], ["full"]]),
        (striped(12, 3), Visibility(), [["triangle"], ["triangle"], ["triangle"]]),
        (striped(12, 3), None, [["full"], ["full"], ["full"]]),
        (
            per_document([0, 8, 16], 2, contiguous),
            Visibility(documents=np.repeat([0, 1], 8)),
            [["triangle", "triangle"], ["full", "full"]],
        ),
    ],
    ids=["contiguous", "zigzag", "striped", "striped, full", "packed"],
)
def test_blocks_of_the_usual_layouts_need_no_mask(
    layout: Layout, visibility: Visibility | None, wanted: list[list[str]]
) -> None:
    assert kinds(layout, visibility) == wanted


def test_a_foreign_zigzag_block_is_one_rectangle() -> None:
    """Two runs of rows see one run of keys, or one run of rows sees both: one kernel call."""
    turns = plan(zigzag(24, 3), Visibility(), "ring", 1).forward
    assert turns[1].pieces == (Piece(slice(0, 8), slice(0, 4), "full"),)
    assert turns[2].pieces == (Piece(slice(4, 8), slice(0, 8), "full"),)


def test_a_foreign_block_of_too_many_pieces_is_masked_as_a_whole() -> None:
    layout = striped(4 * MANY_PIECES, 2, stripe=2)
    assert [piece.kind for turn in plan(layout, Visibility(), "ring", 0).forward
            for piece in turn.pieces] == ["triangle", "masked"]  # fmt: skip


@pytest.mark.parametrize("layout", [zigzag(24, 3), from_owned([[0, 2, 3, 7], [1, 4, 5, 6]])])
def test_an_own_block_in_logical_order_is_one_triangle_whatever_the_gaps(layout: Layout) -> None:
    for own in layout.owned:
        whole = slice(0, len(own))
        assert cut(Visibility(), own, own, "partial") == [Piece(whole, whole, "triangle")]


def test_a_block_out_of_logical_order_is_no_triangle() -> None:
    """Row 0 is the later token: it sees both keys, and row 1 sees only its own."""
    own = np.array([5, 2])
    pieces = cut(Visibility(), own, own, "partial")
    assert covered(pieces, (2, 2), np.array([[True, True], [False, True]])) == ""
    assert Piece(slice(0, 2), slice(0, 2), "triangle") not in pieces


def test_a_step_that_hides_a_key_at_its_own_place_is_no_triangle() -> None:
    """Row 0, at position 1, sees keys at 0 and at 1; a triangle would hide the second."""
    q_pos, k_pos = np.array([1, 2, 3]), np.array([0, 1, 2])
    pieces = cut(Visibility(), q_pos, k_pos, "partial")
    visible = double_loop(q_pos.tolist(), k_pos.tolist(), {"causal": True})
    assert covered(pieces, (3, 3), visible) == ""
