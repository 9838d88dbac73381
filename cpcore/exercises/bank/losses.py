"""Exercises: labels of a split text, and the mean over ranks."""

import math
from collections.abc import Iterator

import numpy as np

from cpcore.exercises.bank.inputs import Array
from cpcore.exercises.exercise import Args, Claim, Example, Exercise, Wrong


def labels_one_by_one(tokens: Array, documents: Array, owned: list[Array]) -> list[Array]:
    """Position by position."""
    found = []
    for positions in owned:
        labels = []
        for i in positions:
            last = i + 1 == len(tokens) or documents[i + 1] != documents[i] or documents[i] < 0
            labels.append(-1 if last else int(tokens[i + 1]))
        found.append(np.array(labels, dtype=int))
    return found


def text(documents: list[int], *owned: list[int]) -> Args:
    """Tokens 10, 11, … and who owns which position."""
    ids = np.arange(10, 10 + len(documents))
    return ids, np.array(documents), [np.array(pos, dtype=int) for pos in owned]


def _layouts() -> Iterator[Args]:
    yield text(4 * [0], [0, 1], [2, 3])
    yield text(8 * [0], [0, 1, 6, 7], [2, 3, 4, 5])
    yield text(5 * [0], [0, 2, 4], [1, 3])
    yield text(3 * [0], [0, 1, 2], [])


RANK_LABELS = Exercise(
    name="rank_labels",
    title="Shift, then split",
    level="core",
    minutes=10,
    chapter="07_training_step.ipynb",
    hints=(
        "A rank does not own the token after its last one. So in which order must the two steps "
        "happen: shift by one, and split by rank?",
        "Build one array of labels for the whole text first. Position i has the label tokens[i + "
        "1] if position i + 1 exists and belongs to the same document.",
        "Compare documents[1:] with documents[:-1], and rule out padding by its id. Then every "
        "rank takes the labels at its positions.",
    ),
    examples=(
        Example("one rank, one document", lambda: text(4 * [0], [0, 1, 2, 3])),
        Example("each rank owns a document", lambda: text([0, 0, 0, 1], [0, 1, 2], [3])),
    ),
    claims=(
        Claim("The next token may live on another rank", _layouts),
        Claim("The last token of a document predicts nothing",
              lambda: [text([0, 1, 1], [0, 1, 2]), text([0, 0, 1, 1, 2], [0, 1, 4], [2, 3])]),
        Claim("Padding has no label",
              lambda: [text([0, -1, -1], [0, 1, 2]), text([0, 0, -1, -1], [0, 3], [1, 2])]),
    ),
    oracle=labels_one_by_one,
    wrong=(
        Wrong(
            "shift after the split",
            "every rank takes the next token of its own shard",
            (("return [labels[positions] for positions in owned]",
              "return [np.append(tokens[p][1:], -1)[: len(p)] for p in owned]"),),
            passes_run=True,
            seen_in="transformers#36607",
        ),
        Wrong(
            "around the end",
            "the last position predicts the first token of the text",
            (("    return", "    labels[-1] = tokens[0]\n    return"),),
        ),
        Wrong(
            "documents ignored",
            "the last token of a document predicts the first one of the next",
            (("(documents[1:] == documents[:-1]) & (documents[:-1] != -1)",
              "documents[:-1] != -1"),),
        ),
        Wrong(
            "padding predicts padding",
            "padding counts as a document of its own",
            ((" & (documents[:-1] != -1)", ""),),
            passes_run=True,
            seen_in="verl#4250",
        ),
    ),
)  # fmt: skip


def sum_over_count(
    sums: list[float], counts: list[int], gradients: list[Array]
) -> tuple[float, Array]:
    """Every token has the same weight, 1 over their number."""
    tokens = [(s / n, g / n) for s, n, g in zip(sums, counts, gradients, strict=True) if n
              for _ in range(n)]  # fmt: skip
    if not tokens:
        return 0.0, np.zeros_like(gradients[0])
    total = sum((g for _, g in tokens), start=np.zeros_like(gradients[0]))
    return math.fsum(loss for loss, _ in tokens) / len(tokens), total / len(tokens)


def ranks(*parts: tuple[float, int, float]) -> Args:
    """Per rank: the sum of its losses, how many tokens have a label, its gradient."""
    sums, counts, gradients = zip(*parts, strict=True)
    return list(map(float, sums)), list(counts), [np.array([1.0, -1.0]) * g for g in gradients]


GLOBAL_MEAN = Exercise(
    name="global_mean",
    title="Sum and count",
    level="core",
    minutes=10,
    chapter="07_training_step.ipynb",
    hints=(
        "A mean of means gives a token of a nearly empty rank more weight than others. Which two "
        "numbers must each rank send instead of its mean?",
        "Add the sums, add the counts, divide once. Each gradient is that of a sum, and a mean "
        "over all tokens divides every one of them by the same number.",
        "The ranks hold parts of one gradient, so the parts are added; no second division by the "
        "number of ranks. Without any label at all, divide by 1 instead of 0.",
    ),
    examples=(
        Example("one rank", lambda: ranks((6, 3, 12))),
        Example("a single label", lambda: ranks((8, 1, 5))),
    ),
    claims=(
        Claim("Ranks with equally many labels", lambda: [ranks((6, 2, 4), (2, 2, 8))]),
        Claim("A label counts the same on every rank",
              lambda: [ranks((6, 3, 9), (10, 1, 1)), ranks((1, 1, 1), (2, 4, 8), (9, 3, 3))]),
        Claim("A rank without labels harms nobody", lambda: [ranks((8, 2, 4), (0, 0, 0))]),
        Claim("Without any label, loss and gradient are 0", lambda: [ranks((0, 0, 0), (0, 0, 0))]),
    ),
    oracle=sum_over_count,
    parts=("mean", "gradient"),
    wrong=(
        Wrong(
            "mean of means",
            "each rank takes its own mean, and the means are averaged",
            (("sum(sums) / count",
              "sum(s / max(1, n) for s, n in zip(sums, counts)) / len(sums)"),),
            passes_run=True,
            seen_in="Megatron-LM#7513",
        ),
        Wrong(
            "own count",
            "each rank divides by its own count: 0 / 0 on a rank without labels",
            (("sum(sums) / count", "sum(s / n for s, n in zip(sums, counts)) / len(sums)"),),
            passes_run=True,
            seen_in="Megatron-LM#1764",
        ),
        Wrong(
            "averaged gradient",
            "the parts of the gradient are averaged over the ranks, which makes it too small",
            (("sum(gradients) / count", "sum(gradients) / count / len(gradients)"),),
            passes_run=True,
            seen_in="Megatron-LM#673",
        ),
        Wrong(
            "no label at all",
            "a step without labels divides by 0",
            (("max(1, sum(counts))", "sum(counts)"),),
            passes_run=True,
            seen_in="Megatron-LM#1764",
        ),
    ),
)  # fmt: skip

EXERCISES = (RANK_LABELS, GLOBAL_MEAN)
