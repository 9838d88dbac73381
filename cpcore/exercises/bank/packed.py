"""Exercises: the mask of packed documents, and keys that several heads share."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from cpcore.exercises.bank.inputs import Array, draw
from cpcore.exercises.exercise import Args, Claim, Example, Exercise, Wrong


def mask_by_pairs(documents: Array, q_pos: Array, k_pos: Array) -> Array:
    """Pair by pair."""
    mask = np.zeros((len(q_pos), len(k_pos)), bool)
    for (a, i), (b, j) in product(enumerate(q_pos), enumerate(k_pos)):
        mask[a, b] = j <= i and documents[i] == documents[j] and documents[i] >= 0
    return mask


def pack(*lengths: int, padding: int = 0) -> Array:
    """Ids of documents of these lengths, then padding."""
    ids = [i for i, n in enumerate(lengths) for _ in range(n)]
    return np.array([*ids, *padding * [-1]], dtype=int)


def _blocks(documents: Array, *shards: list[int]) -> Iterator[Args]:
    for q, k in product(shards, repeat=2):
        yield documents, np.array(q, dtype=int), np.array(k, dtype=int)


DOCUMENT_MASK = Exercise(
    name="document_mask",
    title="Packed documents",
    level="core",
    minutes=10,
    chapter="05_borders.ipynb",
    hints=(
        "Three conditions must hold for a pair: same document, not the future, no padding. Each "
        "is a comparison of a column with a row.",
        "The ids are stored by global position, so the id of a query is `documents` at its "
        "position. Its place within the shard decides nothing.",
        "Padding has one id, −1, so two padding slots look like one document. One side that is "
        "real is enough to rule that out, since the ids are equal anyway.",
    ),
    examples=(
        Example("two documents on one rank",
                lambda: (pack(2, 2), np.arange(4), np.arange(4))),
        Example("the first rank's own block",
                lambda: (pack(3, 3), np.arange(3), np.arange(3))),
    ),
    claims=(
        Claim("Documents that cross a border", lambda: _blocks(pack(3, 3), [0, 1], [2, 3], [4, 5])),
        Claim("Padding sees nothing and is seen by none",
              lambda: _blocks(pack(2, 1, padding=2), [0, 1], [2, 3, 4])),
        Claim("Zigzag shards", lambda: _blocks(pack(3, 4, padding=1), [0, 1, 6, 7], [2, 3, 4, 5])),
        Claim("The order of storage says nothing", lambda: _blocks(pack(2, 3), [4, 0, 2], [3, 1])),
        Claim("A block may have no queries or no keys", lambda: _blocks(pack(2), [], [0, 1])),
    ),
    oracle=mask_by_pairs,
    large=lambda: (pack(100, 60, 96), np.arange(128, 256), np.arange(256)),
    wrong=(
        Wrong(
            "one long text",
            "the documents see each other",
            (("same & real &", "real &"),),
            seen_in="axolotl#3608",
        ),
        Wrong(
            "padding is a document",
            "padding slots see each other, since they share the id −1",
            (("same & real &", "same &"),),
            passes_run=True,
            seen_in="transformers#17306",
        ),
        Wrong(
            "local triangle",
            "the triangle is drawn by places within the shards",
            (("(k_pos[None, :] <= q_pos[:, None])",
              "np.tri(len(q_pos), len(k_pos), dtype=bool)"),
             ("    q_doc, k_doc", "    import numpy as np\n\n    q_doc, k_doc")),
            passes_run=True,
            seen_in="ring-flash-attention#54",
        ),
        Wrong(
            "first ids",
            "every shard takes the first ids of the list, whatever it owns",
            (("documents[q_pos], documents[k_pos]",
              "documents[: len(q_pos)], documents[: len(k_pos)]"),),
            passes_run=True,
            seen_in="Megatron-LM#5243",
        ),
        Wrong(
            "not itself",
            "a token does not see itself",
            (("k_pos[None, :] <= q_pos", "k_pos[None, :] < q_pos"),),
        ),
    ),
)  # fmt: skip


def heads_one_by_one(query: Array, dscores: Array, kv_heads: int) -> Array:
    """Every query head adds its share to the key head that it reads."""
    dk = np.zeros((kv_heads, dscores.shape[-1], query.shape[-1]))
    for head in range(len(query)):
        for key in range(dscores.shape[-1]):
            for row in range(query.shape[1]):
                dk[head * kv_heads // len(query), key] += dscores[head, row, key] * query[head, row]
    return dk


def _groups(*sizes: tuple[int, int]) -> Iterator[Args]:
    for seed, (heads, kv_heads) in enumerate(sizes):
        yield *draw(seed, (heads, 2, 2), (heads, 2, 3)), kv_heads


GROUPED_KEY_GRADIENT = Exercise(
    name="grouped_key_gradient",
    title="Keys that heads share",
    level="core",
    minutes=10,
    chapter="06_backward.ipynb",
    hints=(
        "First forget the groups: what is the gradient by the keys of one head, given dscores and "
        "the queries of that head? Watch the axes: keys come first.",
        "A key that several heads read collects from all of them. So dk of a key head is a sum "
        "over the query heads of its group.",
        "Heads h = 0 … group − 1 read key head 0, so the head axis splits into (kv_heads, group) "
        "in this order, and the second of the two axes is summed.",
    ),
    examples=(
        Example("one key head for two query heads",
                lambda: (np.ones((2, 1, 1)), np.array([[[1.0, 2.0]], [[10.0, 20.0]]]), 1)),
        Example("a key head for each query head",
                lambda: (np.ones((2, 1, 1)), np.array([[[1.0, 2.0]], [[10.0, 20.0]]]), 2)),
    ),
    claims=(
        Claim("Any number of heads, rows and keys", lambda: _groups((1, 1), (3, 1), (3, 3))),
        Claim("Query head h reads key head h // group", lambda: _groups((4, 2), (6, 2), (6, 3))),
    ),
    oracle=heads_one_by_one,
    large=lambda: (*draw(1, (8, 64, 16), (8, 64, 64)), 2),
    wrong=(
        Wrong(
            "tiled",
            "query head h is taken to read key head h mod kv_heads",
            (("reshape(kv_heads, group,", "reshape(group, kv_heads,"),
             ("sum(axis=1)", "sum(axis=0)")),
            passes_run=True,
        ),
        Wrong(
            "mean",
            "the shares of a group are averaged instead of summed",
            (("folded.sum(axis=1)", "folded.mean(axis=1)"),),
        ),
        Wrong(
            "first head only",
            "only the first query head of each group counts",
            (("folded.sum(axis=1)", "folded[:, 0]"),),
        ),
        Wrong(
            "not reduced",
            "the gradient has one head per query head, as if the keys had been repeated",
            (("return folded.sum(axis=1)", "return shares"),),
            seen_in="torchtitan#1283",
        ),
    ),
)  # fmt: skip

EXERCISES = (DOCUMENT_MASK, GROUPED_KEY_GRADIENT)
