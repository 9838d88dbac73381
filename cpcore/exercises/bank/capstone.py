"""The capstone: ring attention, forward and backward, causal, from a blank page."""

from typing import Any

import numpy as np

from cpcore.dense import dense_attention, dense_attention_backward
from cpcore.exercises.bank.inputs import Array, draw
from cpcore.exercises.bank.ringing import joined, played
from cpcore.exercises.exercise import Answer, Args, Claim, Example, Exercise, Wrong

MINUTES, LINES = 45, 60


def whole(q: Array, k: Array, v: Array, dout: Array, positions: list[Array]) -> tuple[Array, ...]:
    """One causal softmax over the whole sequence, and its gradients."""
    visible = np.array([[j <= i for j in range(len(q))] for i in range(len(q))])
    out, _ = dense_attention(q, k, v, visible=visible)
    return out, *dense_attention_backward(q, k, v, dout, visible=visible)


def around(
    answer: Answer, q: Array, k: Array, v: Array, dout: Array, positions: list[Array]
) -> tuple[Array, ...]:
    """All ranks of the ring, each with its own positions of every array."""
    arguments: list[tuple[Any, ...]] = [
        (q[pos], k[pos], v[pos], dout[pos], [p.copy() for p in positions]) for pos in positions
    ]
    largest = max(map(len, positions)) * (k.shape[1] + v.shape[1])
    most_hops = 3 * len(positions)  # forward, replay, return
    names = "q k v dout positions"
    results = played(answer, arguments, names, most_hops, 2 * largest)
    return joined(results, 4, np.concatenate(positions))


def laid_out(seed: int, *owned: list[int], width: int = 2, spread: float = 1.0) -> Args:
    """Random arrays over these positions per rank."""
    positions = [np.array(pos, dtype=int) for pos in owned]
    size = sum(map(len, positions))
    q, k = draw(seed, (size, width), (size, width))
    v, dout = draw(seed + 30, (size, 1), (size, 1))
    return spread * q, k, v, dout, positions


COMMENTARY = (
    (0, "Queries stay, keys and values travel, and each rank keeps a running max, sum and output."),
    (3, "I decide visibility by global positions, so the layout cannot change who sees whom."),
    (6, "At step t a rank holds the block of rank minus t. There is no hop after the last step."),
    (10, "Merging: both sides relative to the larger maximum. The own block comes first, so every "
         "row has a finite maximum and minus inf minus inf never arises."),
    (16, "One division at the end. From max and sum I keep one lse per row; no probability is "
         "stored."),
    (20, "Backward: delta is the row sum of dout times out. It hides the sum over all blocks."),
    (25, "The blocks go around once more. I replay P as exp of score minus lse, and dscores is P "
         "times dP minus delta."),
    (30, "dq stays with the queries. dk and dv ride with their block, and every rank adds its "
         "share, so after R hops the block is home."),
    (35, "A rank that sees nothing of a block computes nothing and still passes it on."),
    (38, "I test against dense attention and its gradients: one rank, three ranks, zigzag, unequal "
         "and empty shards, large scores. Equal loss would test the forward pass only."),
    (43, "Cost per rank: R minus 1 hops forward, one lap of blocks and gradients back; memory of "
         "one block, not of the sequence."),
)  # fmt: skip

CAUSAL_RING = Exercise(
    name="causal_ring",
    title="Capstone: the whole ring",
    level="staff",
    minutes=MINUTES,
    chapter="06_backward.ipynb",
    hints=(
        "Two laps. In the first only keys and values travel, and each rank merges what it sees "
        "into a running state. What must a rank keep for the second lap? Two numbers per row.",
        "Write the scores of a block once, as an inner function of the block's keys and the step; "
        "both laps need it. The step gives the owner, the owner gives the positions.",
        "In the second lap the payload is (k, v, dk, dv), with zeros at the start. Add your "
        "share, yield, and take what arrives; after cp_size hops it is your own block with all "
        "shares.",
    ),
    examples=(
        Example("a single rank", lambda: laid_out(1, [0, 1, 2])),
        Example("two ranks of one position", lambda: laid_out(3, [0], [1])),
    ),
    claims=(
        Claim("Contiguous shards", lambda: [laid_out(3, [0, 1], [2, 3]),
                                            laid_out(4, [0, 1], [2, 3], [4, 5])]),
        Claim("Zigzag and striped shards: positions decide, not ranks",
              lambda: [laid_out(5, [0, 3], [1, 2]), laid_out(6, [0, 5], [1, 4], [2, 3]),
                       laid_out(7, [0, 3, 6], [1, 4, 7], [2, 5])]),
        Claim("The order of storage says nothing", lambda: [laid_out(8, [2, 0], [3, 1])]),
        Claim("Ranks may own unequal shards, or none",
              lambda: [laid_out(9, [0, 1, 2], [3]), laid_out(10, [0, 1], [], [2, 3, 4], [5]),
                       laid_out(11, [], [0])]),
        Claim("Four and five ranks", lambda: [laid_out(s, *([i] for i in range(s)))
                                              for s in (4, 5)]),
        Claim("Large scores neither overflow nor vanish",
              lambda: [laid_out(12, [0, 1], [2, 3], spread=3000.0)], clean=True),
    ),
    oracle=whole,
    play=around,
    shared="each rank has its part of",
    parts=("out", "dq", "dk", "dv"),
    large=lambda: laid_out(13, *np.arange(96).reshape(3, 32).tolist(), width=8),
    most_lines=LINES,
    from_scratch=True,
    commentary=COMMENTARY,
    wrong=(
        Wrong(
            "local triangle",
            "the triangle is drawn by places within the shards",
            (("here[:, None] >= there[None, :]",
              "np.tri(len(here), len(there), dtype=bool) if (rank - step) % cp_size == rank"
              " else np.full((len(here), len(there)), (rank - step) % cp_size < rank)"),),
            passes_run=True,
            seen_in="ring-flash-attention#54",
        ),
        Wrong(
            "message skipped",
            "a rank that sees nothing of a block does not pass it on, and the others wait",
            (("if step < cp_size - 1:", "if step < cp_size - 1 and np.isfinite(scores).any():"),),
            passes_run=True,
            seen_in="a causal ring of PyTorch",
        ),
        Wrong(
            "owners counted forward",
            "owners are counted in the direction of travel, which two ranks cannot tell",
            (("positions[(rank - step) % cp_size]", "positions[(rank + step) % cp_size]"),),
            passes_run=True,
        ),
        Wrong(
            "one hop from home",
            "the gradient sums stop one hop before they are home",
            (("np.zeros_like(v)\n    for step in range(cp_size)",
              "np.zeros_like(v)\n    for step in range(max(1, cp_size - 1))"),),
            seen_in="TransformerEngine#2484",
        ),
        Wrong(
            "left with the neighbor",
            "every share is added, but the block is not sent the last hop home",
            (("        block = yield k_in, v_in, dk, dv",
              "        block = k_in, v_in, dk, dv\n"
              "        if step < cp_size - 1:\n            block = yield block"),),
            seen_in="TransformerEngine#2484",
        ),
        Wrong(
            "delta of the block",
            "delta is taken from the block's own part of the output instead of the whole row's",
            (("(dout @ v_in.T - delta[:, None])",
              "(dout @ v_in.T - (probs * (dout @ v_in.T)).sum(axis=1)[:, None])"),),
        ),
        Wrong(
            "only the sum",
            "the running output is not rescaled",
            (("keep[:, None] * out + weights", "out + weights"),),
        ),
        Wrong(
            "stale block",
            "the replay uses the rank's own keys in every step",
            (("probs = np.exp(scores_with(k_in, step)", "probs = np.exp(scores_with(k, step)"),),
            seen_in="diffusers#14265",
        ),
        Wrong(
            "unshifted",
            "the exponentials are taken without a maximum and overflow",
            (("higher = np.maximum(top, scores.max(axis=1, initial=-np.inf))",
              "higher = np.zeros(len(q))"),),
            passes_run=True,
        ),
    ),
)  # fmt: skip

EXERCISES = (CAUSAL_RING,)
