"""Exercise: the backward pass of a ring."""

from typing import Any

from cpcore.dense import dense_attention, dense_attention_backward
from cpcore.exercises.bank.inputs import Array, draw
from cpcore.exercises.bank.ringing import joined, played, shards
from cpcore.exercises.exercise import Answer, Args, Claim, Example, Exercise, Wrong

GRADIENTS = ("dq", "dk", "dv")


def whole_backward(
    q: Array, k: Array, v: Array, dout: Array, lengths: list[int]
) -> tuple[Array, ...]:
    """The gradients of one softmax over all keys."""
    return dense_attention_backward(q, k, v, dout)


def around(
    answer: Answer, q: Array, k: Array, v: Array, dout: Array, lengths: list[int]
) -> tuple[Array, ...]:
    """All ranks of a ring, each with its shard and its rows' lse and delta."""
    out, lse = dense_attention(q, k, v)
    rows = [shards(x, lengths) for x in (q, k, v, dout, lse, (dout * out).sum(axis=-1))]
    block_size = max(lengths) * (k.shape[1] + v.shape[1])
    arguments: list[tuple[Any, ...]] = list(zip(*rows, strict=True))
    names = "q k v dout lse delta"
    return joined(played(answer, arguments, names, 2 * len(lengths), 2 * block_size), 3)


def ring(seed: int, lengths: list[int], width: int = 2) -> Args:
    """Random shards of these lengths."""
    size = sum(lengths)
    q, k = draw(seed, (size, width), (size, width))
    v, dout = draw(seed + 70, (size, 1), (size, 1))
    return q, k, v, dout, lengths


RING_BACKWARD = Exercise(
    name="ring_backward",
    title="Backward around the ring",
    level="staff",
    minutes=30,
    chapter="06_backward.ipynb",
    hints=(
        "dq needs every block and stays where the queries are. dk and dv of a block need every "
        "rank's queries. What must travel beside a block, so that each rank can add its part?",
        "Let the gradient sums ride along with their keys and values. A rank adds its share to "
        "what has arrived and passes all four arrays on. How many hops bring the block home?",
        "Start with zeros beside your own block. In each of cp_size turns: compute the share of "
        "the block that is here, add it, yield. After the last turn what arrives is your own "
        "block again, with the sums of all ranks.",
    ),
    examples=(
        Example("a single rank", lambda: ring(1, [2])),
        Example("two equal ranks", lambda: ring(2, [1, 1])),
    ),
    claims=(
        Claim("Three ranks and more", lambda: [ring(s, [1] * s) for s in (3, 4, 5)]),
        Claim("Ranks may own unequal shards, or none",
              lambda: [ring(6, [2, 1]), ring(7, [3, 1, 0, 2]), ring(8, [0, 1])]),
    ),
    oracle=whole_backward,
    play=around,
    shared="each rank has its part of",
    parts=GRADIENTS,
    large=lambda: ring(9, [32, 32, 32], 8),
    wrong=(
        Wrong(
            "one hop from home",
            "the sums stop one hop before they are home",
            (("for _ in range(cp_size)", "for _ in range(max(1, cp_size - 1))"),),
            seen_in="TransformerEngine#2484",
        ),
        Wrong(
            "stale block",
            "every turn computes with the rank's own keys and values",
            (("one_block(q, k_in, v_in,", "one_block(q, k, v,"),),
            seen_in="diffusers#14265",
        ),
        Wrong(
            "equal shards assumed",
            "what arrives is read as if it were as long as the rank's own shard",
            (("    dq = np.zeros_like(q)",
              "    own = k, v, np.zeros_like(k), np.zeros_like(v)\n    dq = np.zeros_like(q)"),
             ("k_in, v_in, dk, dv = block",
              "k_in, v_in, dk, dv = (np.resize(x, y.shape) for x, y in zip(block, own))")),
            passes_run=True,
            seen_in="diffusers#13545",
        ),
        Wrong(
            "kept at home",
            "a rank adds its share of every block to its own gradient",
            (("return dq, block[2], block[3]", "return dq, share[1], share[2]"),),
        ),
        Wrong(
            "stops early where nothing is left",
            "a rank with an empty shard returns at once, and the others wait",
            (("    dq = np.zeros_like(q)",
              "    if len(q) == 0:\n        return q, k, v\n    dq = np.zeros_like(q)"),),
            passes_run=True,
            seen_in="EasyContext#47",
        ),
    ),
)  # fmt: skip

EXERCISES = (RING_BACKWARD,)
