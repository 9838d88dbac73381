"""How much work attention is, and how a layout spreads it: pairs and flops in closed form.

Owns visible pairs in total, per rank and per ring step, the efficiency that follows, and flops.
Leaves out time (`overlap`). The package counts pairs of any rule and layout by events
(`schedule`); these forms hold for one causal or full text in equal shards, and are tested
against that count.
"""

from __future__ import annotations

from cpcore.checks import expected, truth, whole_number
from cpcore.planner.arguments import one_of
from cpcore.planner.shapes import ModelShape, known_model

LAYOUTS = ("contiguous", "striped", "zigzag")


def full_pairs(seq_len: int) -> int:
    """Pairs of full attention, S²."""
    return whole_number("seq_len", seq_len, 0) ** 2


def causal_pairs(seq_len: int) -> int:
    """Pairs with key ≤ query, S(S + 1)/2: half of the square and half of its diagonal."""
    size = whole_number("seq_len", seq_len, 0)
    return size * (size + 1) // 2


def window_pairs(seq_len: int, window: int) -> int:
    """Pairs of a causal window of `window` keys, self included: n·S − n(n − 1)/2 with n ≤ S."""
    size = whole_number("seq_len", seq_len, 0)
    width = min(whole_number("window", window, 1), size)
    return width * size - width * (width - 1) // 2


def attention_flops(
    pairs: int, q_heads: int, head_dim: int, value_dim: int | None = None, *, backward: bool = False
) -> int:
    """Flops of the matrix products over visible pairs of one layer; a multiply-add is two.

    Forward two products, scores and output: 2·pairs·Hq·(D + Dv), so 4·pairs·d with d = Hq·D.
    Backward five: the scores again, dP, and then dq, dk, dv: 2·pairs·Hq·(3D + 2Dv), so 10·pairs·d.
    The softmax itself is left out; it is not a matrix product.

    Raises: ValueError for sizes below 1 or negative pairs.
    """
    heads, dim = whole_number("q_heads", q_heads, 1), whole_number("head_dim", head_dim, 1)
    v_dim = dim if value_dim is None else whole_number("value_dim", value_dim, 1)
    products = 3 * dim + 2 * v_dim if truth("backward", backward) else dim + v_dim
    return 2 * whole_number("pairs", pairs, 0) * heads * products


def matmul_flops(model: ModelShape, tokens: int, *, backward: bool = False) -> int:
    """Flops of all weight matrices for `tokens`: 2 a weight forward, 4 backward.

    Layers and the output embedding; looking up the input embedding is no product.

    Raises: ValueError for tokens below 1.
    """
    known_model(model)
    weights = model.layers * model.layer_matrices + model.vocabulary * model.hidden
    return (4 if truth("backward", backward) else 2) * weights * whole_number("tokens", tokens, 1)


def rank_pairs(layout: str, seq_len: int, cp_size: int, rank: int) -> int:
    """Visible causal pairs of one rank, all steps together; S must be a multiple of 2R.

    Raises: ValueError for an unknown layout, a rank that is not there, or uneven shards.
    """
    _, ranks = _even_shards(layout, seq_len, cp_size)
    return sum(step_pairs(layout, seq_len, cp_size, rank, step) for step in range(ranks))


def step_pairs(layout: str, seq_len: int, cp_size: int, rank: int, step: int) -> int:
    """Visible causal pairs of one rank at one ring step, where it meets owner (rank - step) mod R.

    With c = S/R: its own block has c(c + 1)/2 pairs in any of the layouts. Foreign blocks:
    contiguous c² from an earlier rank, none from a later one; zigzag c²/2 from every rank;
    striped c(c + 1)/2 from a rank before it in the stripe, c(c − 1)/2 from one after it.

    Raises: ValueError as `rank_pairs`, and for a step that is not there.
    """
    c, ranks = _even_shards(layout, seq_len, cp_size)
    here = _below("rank", rank, ranks)
    owner = (here - _below("step", step, ranks)) % ranks
    if owner == here:
        return c * (c + 1) // 2
    if layout == "zigzag":
        return c * c // 2
    if layout == "striped":
        return c * (c + 1) // 2 if owner < here else c * (c - 1) // 2
    return c * c if owner < here else 0


def slowest_pairs(
    layout: str, seq_len: int, cp_size: int, step: int, *, causal: bool = True
) -> int:
    """Pairs of the busiest rank at a ring step: the others wait for it.

    In these layouts the last rank is one of the busiest at every step: after its own block it
    meets earlier owners only.

    Raises: ValueError as `step_pairs`.
    """
    c, ranks = _even_shards(layout, seq_len, cp_size)
    _below("step", step, ranks)
    if not truth("causal", causal):
        return c * c
    return step_pairs(layout, seq_len, cp_size, ranks - 1, step)


def ring_efficiency(layout: str, seq_len: int, cp_size: int) -> float:
    """Average work over the work that the steps take: 1 means that no rank ever waits.

    Counts causal pairs only: transfers, launches and the speed of a kernel are not in it.

    Raises: ValueError as `step_pairs`.
    """
    _, ranks = _even_shards(layout, seq_len, cp_size)
    slowest = sum(slowest_pairs(layout, seq_len, ranks, step) for step in range(ranks))
    return causal_pairs(seq_len) / ranks / slowest


def plain_ring_limit(cp_size: int) -> float:
    """R / (2R − 1): what the efficiency of contiguous shards tends to for long sequences.

    Raises: ValueError for a size below 1.

    >>> [round(100 * plain_ring_limit(ranks), 1) for ranks in (2, 4, 8, 16)]
    [66.7, 57.1, 53.3, 51.6]
    """
    ranks = whole_number("cp_size", cp_size, 1)
    return ranks / (2 * ranks - 1)


def _below(argument: str, value: int, ranks: int) -> int:
    """`value` as the number of a rank or of a step."""
    number = whole_number(argument, value, 0)
    if number >= ranks:
        raise expected(argument, f"below cp_size = {ranks}", number)
    return number


def _even_shards(layout: str, seq_len: int, cp_size: int) -> tuple[int, int]:
    """c = S/R and R, after the checks that make the closed forms exact."""
    one_of("layout", layout, LAYOUTS)
    ranks = whole_number("cp_size", cp_size, 1)
    size = whole_number("seq_len", seq_len, 2 * ranks)
    if size % (2 * ranks):
        raise expected("seq_len", f"a multiple of 2 · cp_size = {2 * ranks}", size)
    return size // ranks, ranks
