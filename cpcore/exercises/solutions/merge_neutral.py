"""Solution of the exercise `merge_neutral`."""

import numpy as np


def merge_neutral(acc, chunk):
    """Merge two summaries in which rows may have seen nothing, on either side or on both.

    acc and chunk have the fields output (…, Q, Dv), sum (…, Q) and max (…, Q). A row that saw
    nothing has sum 0 and max −inf, and its output may hold anything, even NaN. Return (output, sum,
    max) of both together; a row that no side has seen is 0, 0, −inf. No operation may be invalid.
    """
    # >>> yours
    top = np.maximum(acc.max, chunk.max)
    safe = np.where(np.isneginf(top), 0, top)
    output, total = np.zeros_like(acc.output), np.zeros_like(acc.sum)
    for side in (acc, chunk):
        weight = np.exp(side.max - safe)  # 0 for a row that saw nothing
        unseen = (side.sum == 0)[..., None]
        output = output + weight[..., None] * np.where(unseen, 0, side.output)
        total = total + weight * side.sum
    return output, total, top
    # <<<
