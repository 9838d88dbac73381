"""Solution of the exercise `striped`."""

import numpy as np


def striped(seq_len, cp_size, stripe):
    """Deal positions to ranks like cards, `stripe` at a time.

    Positions 0 … seq_len − 1 are cut into runs of length stripe; run i goes to rank i mod cp_size.
    seq_len need not be a multiple of anything. Return a list of cp_size integer arrays: the
    positions of each rank, rising; a rank may own none.
    """
    # >>> yours
    owner = np.arange(seq_len) // stripe % cp_size
    return [np.flatnonzero(owner == rank) for rank in range(cp_size)]
    # <<<
