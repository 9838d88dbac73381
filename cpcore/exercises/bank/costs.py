"""Exercises: bytes of a ring, and the chunk that hides them."""

from collections.abc import Iterator
from fractions import Fraction

from cpcore.exercises.exercise import Args, Claim, Example, Exercise, Wrong
from cpcore.layouts import from_lengths
from cpcore.ledger import ledger
from cpcore.schedule import schedule

PHASES = ("forward", "replay", "return")


def by_ledger(
    lengths: list[int], q_heads: int, kv_heads: int, head_dim: int, value_dim: int,
    element_bytes: int, grad_bytes: int,
) -> list[tuple[int, ...]]:  # fmt: skip
    """What the package counts from its events."""
    layout = from_lengths(lengths)
    rows = ledger(
        schedule(layout, None), layout, q_heads=q_heads, kv_heads=kv_heads, head_dim=head_dim,
        value_dim=value_dim, element_bytes=element_bytes, grad_bytes=grad_bytes,
    )  # fmt: skip
    sent = {(row.rank, row.phase): row.bytes_sent for row in rows}
    return [tuple(sent.get((r, p), 0) for p in PHASES) for r in range(layout.cp_size)]


def _unequal() -> Iterator[Args]:
    yield [2, 1], 1, 1, 1, 1, 2, 2
    yield [1, 2, 4], 1, 1, 1, 1, 1, 1
    yield [3, 0, 2, 5], 1, 1, 2, 2, 2, 2


RING_BYTES = Exercise(
    name="ring_bytes",
    title="The ledger of a ring",
    level="senior",
    minutes=15,
    chapter="09_cost.ipynb",
    hints=(
        "Write down whose block rank r holds at steps 0, 1, … Which owner's block does it never "
        "send on, because the journey ends there?",
        "Forward and replay: rank r sends every block but that of the next rank, whose journey "
        "ends here. Return: it sends the sum of every owner but itself.",
        "So the tokens are all tokens minus one shard, another shard for each phase. A token is "
        "kv_heads · (head_dim + value_dim) numbers; the query heads do not travel.",
    ),
    examples=(
        Example("two equal ranks", lambda: ([2, 2], 1, 1, 1, 1, 2, 2)),
        Example("three equal ranks", lambda: ([1, 1, 1], 1, 1, 4, 4, 2, 2)),
    ),
    claims=(
        Claim("Shards of unequal length", _unequal),
        Claim("Only key heads travel", lambda: [([1, 1], 4, 2, 1, 1, 1, 1)]),
        Claim("Keys and values may differ in width, gradients in bytes",
              lambda: [([1, 1], 1, 1, 1, 3, 1, 1), ([2, 2, 2], 2, 1, 2, 1, 2, 4)]),
        Claim("A single rank sends nothing", lambda: [([5], 1, 1, 1, 1, 2, 2)]),
    ),
    oracle=by_ledger,
    wrong=(
        Wrong(
            "query heads",
            "keys are repeated for every query head before they travel",
            (("width = kv_heads *", "width = q_heads *"),),
            passes_run=True,
            seen_in="torchtitan#1283",
        ),
        Wrong(
            "one hop too many",
            "the last hop, which nobody needs, is counted",
            (("(total - lengths[(rank + 1) % cp_size])", "total"),),
        ),
        Wrong(
            "own shard only",
            "a rank is taken to send its own shard in every hop, as if all were equally long",
            (("(total - lengths[(rank + 1) % cp_size])", "lengths[rank] * (cp_size - 1)"),),
            passes_run=True,
            seen_in="diffusers#13545",
        ),
        Wrong(
            "received",
            "the blocks that arrive are counted instead of those that leave",
            (("lengths[(rank + 1) % cp_size]", "lengths[rank] "),),
            passes_run=True,
        ),
        Wrong(
            "values as wide as keys",
            "values are counted with the width of keys",
            (("head_dim + value_dim", "2 * head_dim"),),
            passes_run=True,
        ),
    ),
)  # fmt: skip


def by_fractions(
    flops_per_s: float, bytes_per_s: float, group: int, element_bytes: int, visible_share: float
) -> int:
    """Exact arithmetic: try chunk after chunk near the bound that the two times give."""

    def hidden(c: int) -> bool:
        compute = 4 * c * Fraction(visible_share) / Fraction(flops_per_s)
        return Fraction(2 * element_bytes, group) / Fraction(bytes_per_s) <= compute

    high = 1
    while not hidden(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if hidden(middle) else (middle, high)
    return high  # fmt: skip


HIDDEN_CHUNK = Exercise(
    name="hidden_chunk",
    title="When is the hop free?",
    level="senior",
    minutes=15,
    chapter="09_cost.ipynb",
    hints=(
        "Write both times as formulas, with their units: flops over flop/s, bytes over bytes/s. "
        "Which power of c does each have?",
        "Computing grows with c², the transfer with c. So the transfer is hidden from some c on; "
        "set the two times equal and divide both by c and by the width.",
        "The bound is c ≥ element_bytes · flops_per_s / (2 · visible_share · group · "
        "bytes_per_s). A chunk is a whole number, so round to the safe side.",
    ),
    examples=(
        Example("a bound of exactly 1000", lambda: (1e15, 1e12, 1, 2, 1.0)),
        Example("a slower device", lambda: (5e14, 1e12, 1, 2, 1.0)),
    ),
    claims=(
        Claim("A fast device needs a longer chunk, a fast link a shorter one",
              lambda: [(4e14, 1e12, 1, 2, 1.0), (1e14, 5e10, 1, 2, 1.0)]),
        Claim("Half of the pairs hide half of the transfer",
              lambda: [(1e15, 1e12, 1, 2, 0.5), (1e15, 1e12, 1, 2, 0.25)]),
        Claim("Shared key heads shorten the chunk", lambda: [(1e15, 1e12, 8, 2, 1.0)]),
        Claim("The size of an element counts", lambda: [(1e15, 1e12, 1, 4, 1.0)]),
        Claim("The bound is rounded to the safe side",
              lambda: [(1e3, 3e2, 1, 2, 1.0), (9.89e14, 4.5e11, 1, 2, 1.0)]),
    ),
    oracle=by_fractions,
    wrong=(
        Wrong(
            "rounded down",
            "the bound is rounded down, and the transfer just shows",
            (("math.ceil(", "int("),),
            passes_run=True,
        ),
        Wrong(
            "keys only",
            "only the keys are counted, not the values",
            (("2 / group", "1 / group"),),
        ),
        Wrong(
            "balance is free",
            "the share of visible pairs is left out, or would make the chunk shorter",
            (("4 * visible_share", "4 / visible_share"),),
            passes_run=True,
        ),
        Wrong(
            "query heads travel",
            "the keys are repeated for all query heads of a group",
            (("2 / group", "2"),),
            passes_run=True,
            seen_in="torchtitan#1283",
        ),
        Wrong(
            "two bytes",
            "every element is taken to have two bytes",
            (("numbers * element_bytes", "numbers * 2"),),
            passes_run=True,
        ),
    ),
)  # fmt: skip

EXERCISES = (RING_BYTES, HIDDEN_CHUNK)
