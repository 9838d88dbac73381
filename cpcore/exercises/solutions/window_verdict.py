"""Solution of the exercise `window_verdict`."""


def window_verdict(q_pos, k_pos, window):
    """Say how much of a block of scores is visible under a causal sliding window.

    q_pos (Q,) and k_pos (K,) are global positions, in any order; either may have no entry. A query
    sees its own position and those before it, `window` keys in all. Return "full" if every pair is
    visible, "empty" if none is (also without queries or keys), else "partial", for any layout.
    """
    # >>> yours
    behind = q_pos[:, None] - k_pos[None, :]  # (Q, K)
    visible = (behind >= 0) & (behind < window)
    if not visible.any():
        return "empty"
    return "full" if visible.all() else "partial"
    # <<<
