"""Solution of the exercise `zigzag`."""

from itertools import pairwise

import numpy as np


def zigzag(seq_len, cp_size):
    """Lay a sequence out so that every rank has an early and a late piece.

    Cut positions 0 … seq_len − 1 into 2 · cp_size pieces, piece i from i · seq_len // (2 · cp_size)
    up to the start of the next. Rank r stores piece r, then piece 2 · cp_size − 1 − r. Return
    (permutation, inverse), integers of shape (seq_len,): physical = logical[permutation], where
    physical is rank after rank, and logical = physical[inverse].
    """
    # >>> yours
    pieces = 2 * cp_size
    starts = [i * seq_len // pieces for i in range(pieces + 1)]
    runs = [np.arange(a, b) for a, b in pairwise(starts)]
    order = [i for rank in range(cp_size) for i in (rank, pieces - 1 - rank)]
    permutation = np.concatenate([runs[i] for i in order])
    return permutation, np.argsort(permutation)
    # <<<
