"""Exercise 3: the loop over chunks."""

from collections.abc import Iterator

import numpy as np

from cpcore.dense import dense_attention
from cpcore.exercises.bank.inputs import LN3, Array, column, draw, one_row, splits
from cpcore.exercises.exercise import Args, Claim, Example, Exercise, Wrong


def whole_softmax(query: Array, key_chunks: list[Array], value_chunks: list[Array]) -> Array:
    """One softmax over the concatenated keys, in float64, rounded once."""
    parts = (np.concatenate(x, axis=-2).astype(np.float64) for x in (key_chunks, value_chunks))
    output, _ = dense_attention(query.astype(np.float64), *parts)
    return output.astype(query.dtype)


def cut(at: list[int], query: Array, key: Array, value: Array) -> Args:
    """The arguments of the loop, with the keys cut at these places."""
    return query, *(np.split(x, at, axis=-2) for x in (key, value))


def _any_split() -> Iterator[Args]:
    for seed, keys in enumerate([2, 3, 5, 8]):
        yield cut(splits(keys, seed), *draw(seed, (2, 4), (keys, 4), (keys, 3)))


def _ones() -> Iterator[Args]:
    yield cut([1, 2, 3], *draw(4, (3, 2), (4, 2), (4, 2)))
    yield cut([], *draw(5, (1, 2), (1, 2), (1, 2)))


def _low_scores() -> Iterator[Args]:
    yield cut([1], *one_row([-900, -901], [1, 3]))
    yield cut([1, 2], *one_row([900, 0, 901], [1, 5, 3]))


def _heads() -> Iterator[Args]:
    yield cut([2], *draw(7, (2, 2, 4), (2, 5, 4), (2, 5, 3)))


def _sixteen_bits() -> Iterator[Args]:
    scores, values = [np.log(2048)] + 256 * [0.0], [0.0] + 256 * [9.0]
    arrays = (x.astype(np.float16) for x in (np.ones((1, 1)), column(scores), column(values)))
    yield cut(list(range(1, 257)), *arrays)


def _many_queries() -> Iterator[Args]:
    yield cut(list(range(32, 512, 32)), *draw(8, (512, 4), (512, 4), (512, 4)))


RING_ATTENTION = Exercise(
    name="ring_attention",
    title="Attention over chunks that arrive one by one",
    level="core",
    minutes=15,
    chapter="03_rescale_and_merge.ipynb",
    hints=(
        "Keep one running summary. What must it be before the first chunk, so that merging the "
        "first chunk into it changes nothing?",
        "Start from the neutral state. For each chunk: summarize it as if it were alone, merge "
        "the summary into the running one, forget the chunk.",
        "Divide once, after the last chunk: output = running output / running sum. "
        "`finalize(state, dtype)` does it and casts once.",
    ),
    examples=(
        Example("four equal scores, 2 | 2", lambda: cut([2], *one_row(4 * [0], [0, 0, 0, 4]))),
        Example("one chunk of scores 0 and ln 3", lambda: cut([], *one_row([0, LN3], [0, 4]))),
    ),
    claims=(
        Claim("The split changes nothing", _any_split),
        Claim("Chunks of one key are enough", _ones),
        Claim("Scores far from 0 neither overflow nor vanish", _low_scores),
        Claim("Leading axes, such as heads, are free", _heads),
        Claim("float16 inputs are accumulated in float32, the result is float16", _sixteen_bits),
        Claim(
            "The scores of all keys are never held at once",
            _many_queries,
            peak=lambda query, keys, values: 8 * len(query) * sum(map(len, keys)) // 2,
        ),
    ),
    oracle=whole_softmax,
    large=lambda: cut(list(range(64, 1024, 64)), *draw(9, (256, 16), (1024, 16), (1024, 16))),
    wrong=(
        Wrong(
            "mean of chunks",
            "the finished answers of the chunks are averaged with equal weights",
            (
                ("    for key_chunk", "    outs = []\n    for key_chunk"),
                (
                    "acc = cpcore.merge_chunk_stats(acc, chunk)",
                    "outs.append(cpcore.finalize(chunk, query.dtype)[0])",
                ),
                ("cpcore.finalize(acc, query.dtype)[0]", "sum(outs) / len(outs)"),
            ),
            passes_run=True,
            seen_in="gpu-mode/ring-attention#6",
        ),
        Wrong(
            "one chunk short",
            "the last chunk is never merged",
            (("zip(key_chunks, value_chunks, strict=True)",
              "list(zip(key_chunks, value_chunks))[:-1]"),),
        ),
        Wrong(
            "starts at zero",
            "the running maximum starts at 0: scores far below 0 then vanish",
            (("query.dtype)\n    for",
              "query.dtype)\n    acc = acc._replace(sum=acc.sum + 1e-300, max=acc.sum)\n    for"),),
            passes_run=True,
        ),
        Wrong(
            "all at once",
            "all keys are concatenated first, which needs the memory that a ring should save",
            (
                ("zip(key_chunks, value_chunks, strict=True)", "[0]"),
                ("for key_chunk, value_chunk in", "import numpy as np\n    for _ in"),
                (
                    "attention_chunk_stats(query, key_chunk, value_chunk)",
                    "attention_chunk_stats(query, *(np.concatenate(x, axis=-2)"
                    " for x in (key_chunks, value_chunks)))",
                ),
            ),
            passes_run=True,
        ),
        Wrong(
            "state in 16 bits",
            "the running state is rounded to the inputs' 16 bits after every merge",
            (("acc = cpcore.merge_chunk_stats(acc, chunk)",
              "acc = cpcore.merge_chunk_stats(acc, chunk)\n"
              "        acc = type(acc)(*(x.astype(query.dtype).astype(x.dtype) for x in acc))"),),
            passes_run=True,
            seen_in="ring-flash-attention#42",
        ),
    ),
)  # fmt: skip

EXERCISES = (RING_ATTENTION,)
