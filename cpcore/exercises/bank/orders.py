"""Exercises: two layouts of a sequence over ranks."""

from collections.abc import Iterator

import numpy as np

from cpcore.exercises.bank.inputs import Array
from cpcore.exercises.exercise import Args, Claim, Example, Exercise, Wrong


def zigzag_by_hand(seq_len: int, cp_size: int) -> tuple[Array, Array]:
    """Ask every position for its piece, and every rank for its two pieces."""
    pieces = 2 * cp_size
    piece = [max(i for i in range(pieces) if i * seq_len // pieces <= p) for p in range(seq_len)]
    stored = [p for rank in range(cp_size) for i in (rank, pieces - 1 - rank)
              for p in range(seq_len) if piece[p] == i]  # fmt: skip
    return np.array(stored, dtype=int), np.array([stored.index(p) for p in range(seq_len)], dtype=int)  # fmt: skip  # noqa: E501


def _sizes(*pairs: tuple[int, int]) -> Iterator[Args]:
    yield from pairs


ZIGZAG = Exercise(
    name="zigzag",
    title="Zigzag and its inverse",
    level="core",
    minutes=15,
    chapter="08_load_balance.ipynb",
    hints=(
        "Number the 2 · cp_size pieces. In which order do they lie in memory if rank 0 comes "
        "first, then rank 1, and so on? Write it down for two ranks.",
        "The permutation is that order of pieces with each piece spelled out. The inverse answers "
        "another question: at which place of memory does position p lie?",
        "Sorting undoes a permutation: the order in which its entries would have to be taken to "
        "be sorted is the inverse. numpy has a function for that order.",
    ),
    examples=(
        Example("two ranks, one position a piece", lambda: (4, 2)),
        Example("two ranks", lambda: (8, 2)),
    ),
    claims=(
        Claim("Three ranks: the inverse is not the permutation", lambda: _sizes((6, 3), (12, 3))),
        Claim("One rank, and more than three", lambda: _sizes((2, 1), (8, 4), (20, 5))),
        Claim("Any length, no token is lost",
              lambda: _sizes((7, 2), (3, 4), (5, 1), (11, 3), (1, 2))),
    ),
    oracle=zigzag_by_hand,
    parts=("permutation", "inverse"),
    wrong=(
        Wrong(
            "twice the same",
            "the permutation is taken for its own inverse",
            (("permutation, np.argsort(permutation)", "permutation, permutation.copy()"),),
            seen_in="pytorch#161062",
        ),
        Wrong(
            "dropped tail",
            "the pieces are cut by a length that is rounded down, so tokens at the end are lost",
            (("i * seq_len // pieces", "i * (seq_len // pieces)"),),
            passes_run=True,
            seen_in="TransformerEngine#1930",
        ),
        Wrong(
            "restored in order",
            "the shards are put back as if they were contiguous",
            (("permutation, np.argsort(permutation)", "permutation, np.arange(seq_len)"),),
            seen_in="ms-swift#10071",
        ),
        Wrong(
            "swapped",
            "permutation and inverse change places",
            (("permutation, np.argsort(permutation)", "np.argsort(permutation), permutation"),),
        ),
        Wrong(
            "half a ring further",
            "rank r stores pieces r and r + cp_size",
            (("pieces - 1 - rank", "rank + cp_size"),),
        ),
        Wrong(
            "mirrored piece",
            "the late piece is stored backward",
            (("[runs[i] for i in order]", "[runs[i][::1 if i < cp_size else -1] for i in order]"),),
        ),
        Wrong(
            "divisible only",
            "the length is expected to be a multiple of 2 · cp_size",
            (("    pieces = 2 * cp_size\n",
              "    pieces = 2 * cp_size\n    assert seq_len % pieces == 0\n"),),
            passes_run=True,
            seen_in="EasyContext#47",
        ),
    ),
)  # fmt: skip


def dealt(seq_len: int, cp_size: int, stripe: int) -> list[Array]:
    """Deal the positions one after the other."""
    hands: list[list[int]] = [[] for _ in range(cp_size)]
    rank = held = 0
    for position in range(seq_len):
        hands[rank].append(position)
        held += 1
        if held == stripe:
            rank, held = (rank + 1) % cp_size, 0
    return [np.array(hand, dtype=int) for hand in hands]


def _stripes(*sizes: tuple[int, int, int]) -> Iterator[Args]:
    yield from sizes


STRIPED = Exercise(
    name="striped",
    title="Deal positions like cards",
    level="warm-up",
    minutes=10,
    chapter="08_load_balance.ipynb",
    hints=(
        "Ask a position instead of a rank: which run does position p lie in, and who gets that "
        "run?",
        "Runs are found by an integer division, ranks by a remainder. In which order must the two "
        "be applied?",
        "Make the array of owners of all positions first. The positions of a rank are the places "
        "where that array holds its number.",
    ),
    examples=(
        Example("two ranks, one at a time", lambda: (6, 2, 1)),
        Example("two ranks, four positions", lambda: (4, 2, 1)),
    ),
    claims=(
        Claim("More than one at a time", lambda: _stripes((8, 2, 2), (12, 3, 2), (9, 3, 3))),
        Claim("Any length", lambda: _stripes((5, 2, 1), (7, 3, 1), (7, 2, 2), (10, 3, 2))),
        Claim("More ranks than runs: some own nothing", lambda: _stripes((2, 4, 1), (3, 3, 2))),
    ),
    oracle=dealt,
    wrong=(
        Wrong(
            "remainder first",
            "the remainder is taken before the division",
            (("// stripe % cp_size", "% cp_size // stripe"),),
            passes_run=True,
        ),
        Wrong(
            "stripe of one",
            "the stripe is ignored",
            (("// stripe % cp_size", "% cp_size"),),
            passes_run=True,
        ),
        Wrong(
            "reshaped",
            "the positions are folded into a table, which fits only some lengths",
            (("    owner = np.arange(seq_len) // stripe % cp_size\n",
              "    table = np.arange(seq_len).reshape(-1, cp_size, stripe)\n"
              "    return [table[:, rank].ravel() for rank in range(cp_size)]\n"),),
            passes_run=True,
            seen_in="pytorch#159706",
        ),
        Wrong(
            "dropped tail",
            "positions after the last full round are lost",
            (("np.arange(seq_len)",
              "np.arange(seq_len // (cp_size * stripe) * cp_size * stripe)"),),
            passes_run=True,
            seen_in="TransformerEngine#3331",
        ),
    ),
)  # fmt: skip

EXERCISES = (ZIGZAG, STRIPED)
