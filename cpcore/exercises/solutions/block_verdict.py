"""Solution of the exercise `block_verdict`."""


def block_verdict(q_pos, k_pos):
    """Say how much of a block of scores is visible under a causal mask.

    q_pos (Q,) and k_pos (K,) are global positions, in any order; either may have no entry. A query
    sees the keys at its own position and before. Return "full" if every pair is visible, "empty"
    if none is (also without queries or keys), else "partial". Four positions decide it.
    """
    # >>> yours
    if len(q_pos) == 0 or len(k_pos) == 0:
        return "empty"
    if q_pos.max() < k_pos.min():
        return "empty"
    return "full" if q_pos.min() >= k_pos.max() else "partial"
    # <<<
