"""Exercises: one step of a ring, and a hop that does not hang."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from cpcore.exercises.exercise import Answer, Args, Claim, Example, Exercise, Wrong
from cpcore.layouts import contiguous
from cpcore.schedule import schedule


def by_schedule(rank: int, step: int, cp_size: int) -> tuple[int | None, ...]:
    """What the package's schedule says of this rank and step."""
    events = schedule(contiguous(cp_size, cp_size), None, backward=False)
    event = next(e for e in events if (e.rank, e.step) == (rank, step))
    return event.owner, event.send_to, event.recv_from


def _rings(*sizes: int) -> Iterator[Args]:
    for cp_size in sizes:
        yield from ((rank, step, cp_size) for rank, step in product(range(cp_size), repeat=2))


RING_STEP = Exercise(
    name="ring_step",
    title="Whose block is here?",
    level="warm-up",
    minutes=5,
    chapter="04_causal_ring.ipynb",
    hints=(
        "Follow one block: it starts at its owner, and after t hops it is t ranks further on. Now "
        "ask the other way round: who started t ranks before me?",
        "Count around the ring with the remainder of a division. In Python it is never negative "
        "for a positive divisor, unlike in C.",
        "There are cp_size steps and cp_size − 1 hops: nothing was received before the first "
        "step, and nothing is sent after the last.",
    ),
    examples=(
        Example("the first step on two ranks", lambda: (0, 0, 2)),
        Example("the last step on two ranks", lambda: (1, 1, 2)),
    ),
    claims=(
        Claim("Two ranks", lambda: _rings(2)),
        Claim("Three ranks and more: the direction matters", lambda: _rings(3, 4, 5)),
        Claim("A single rank sends nothing", lambda: _rings(1)),
    ),
    oracle=by_schedule,
    parts=("owner", "send_to", "recv_from"),
    wrong=(
        Wrong(
            "wrong direction",
            "owners are counted in the direction in which the blocks travel",
            (("(rank - step) % cp_size", "(rank + step) % cp_size"),),
            passes_run=True,
        ),
        Wrong(
            "one hop too many",
            "the block is sent on after the last step, where nobody needs it",
            (("if step < cp_size - 1", "if step < cp_size"),),
        ),
        Wrong(
            "no wrap",
            "ranks below 0 are not counted around the ring",
            (("(rank - step) % cp_size", "rank - step"),
             ("(rank - 1) % cp_size", "rank - 1")),
            passes_run=True,
        ),
        Wrong(
            "stale block",
            "every step computes with the block of step 0",
            (("owner = (rank - step) % cp_size", "owner = rank"),),
            seen_in="diffusers#14265",
        ),
        Wrong(
            "skipped message",
            "a rank that may skip its compute under a causal mask also skips its message",
            (("if step < cp_size - 1 else", "if step < min(rank + 1, cp_size - 1) else"),),
            passes_run=True,
            seen_in="a causal ring of PyTorch",
        ),
    ),
)  # fmt: skip

ROUNDS = 3
WORDS = ("send", "receive")


def all_orders(answer: Answer, cp_size: int) -> list[Any]:
    """The orders of all ranks."""
    return [answer(rank, cp_size) for rank in range(cp_size)]


def alternating(cp_size: int) -> list[tuple[str, ...]]:
    """One right answer of many."""
    if cp_size == 1:
        return [()]
    return [WORDS if rank % 2 == 0 else WORDS[::-1] for rank in range(cp_size)]


def complaint(orders: Any, cp_size: int) -> str | None:
    """Play the hop: a send and the receive of the next rank end together, or both wait."""
    wanted = sorted(WORDS) if cp_size > 1 else []
    for rank, order in enumerate(orders):
        if not isinstance(order, tuple | list) or sorted(order) != wanted:
            return f"rank {rank} of {cp_size} to make the calls {wanted}, each once"
    left = [list(order) for order in orders]
    rounds = 0
    while any(left):
        ready = [r for r in range(cp_size) if left[r][:1] == ["send"]
                 and left[(r + 1) % cp_size][:1] == ["receive"]]  # fmt: skip
        if not ready:
            waiting = ", ".join(f"rank {r} in {calls[0]}" for r, calls in enumerate(left) if calls)
            return f"every call to return, but they wait for ever: {waiting}"
        for rank in ready:
            left[rank].pop(0)
            left[(rank + 1) % cp_size].pop(0)
        rounds += 1
    return None if rounds <= ROUNDS else f"at most {ROUNDS} rounds, this hop takes {rounds}"


HOP_ORDER = Exercise(
    name="hop_order",
    title="A hop that does not hang",
    level="core",
    minutes=10,
    chapter="04_causal_ring.ipynb",
    hints=(
        "If every rank sends first, each waits for a receive that nobody has reached. At least "
        "one rank must start otherwise. Which ranks should, so that many hops happen at once?",
        "Let neighbors start differently: then a sender always faces a receiver. The rank number "
        "alone can decide it.",
        "Even ranks one way, odd ranks the other. With an odd number of ranks the last and the "
        "first start alike; play it on paper for three ranks and see that one more round solves "
        "it.",
    ),
    examples=(
        Example("two ranks", lambda: (2,)),
        Example("three ranks", lambda: (3,)),
    ),
    claims=(
        Claim("The hop ends on any number of ranks, in at most 3 rounds",
              lambda: [(n,) for n in (2, 3, 4, 5, 6, 9)], check=complaint),
        Claim("A single rank makes no call", lambda: [(1,)], check=complaint),
    ),
    oracle=alternating,
    play=all_orders,
    wrong=(
        Wrong(
            "all send first",
            "every rank sends first, and all wait",
            (('else ("receive", "send")', 'else ("send", "receive")'),),
        ),
        Wrong(
            "all receive first",
            "every rank receives first, and all wait",
            (('return ("send", "receive") if', 'return ("receive", "send") if'),),
        ),
        Wrong(
            "one after the other",
            "only rank 0 starts otherwise, so the ranks wait for each other in a chain",
            (("rank % 2 == 0", "rank > 0"),),
            passes_run=True,
        ),
        Wrong(
            "talks to itself",
            "a single rank sends to itself, and waits for its own receive",
            (("if cp_size == 1:", "if cp_size == 0:"),),
            passes_run=True,
            seen_in="a helper of vLLM",
        ),
    ),
)  # fmt: skip

EXERCISES = (RING_STEP, HOP_ORDER)
