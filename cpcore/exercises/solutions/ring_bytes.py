"""Solution of the exercise `ring_bytes`."""


def ring_bytes(lengths, q_heads, kv_heads, head_dim, value_dim, element_bytes, grad_bytes):
    """Count the bytes that each rank of a ring sends in the three phases of a training step.

    lengths has one entry per rank, its tokens; keys are head_dim wide and values value_dim, in
    kv_heads heads; q_heads query heads read them. In forward and replay every rank passes on what
    it holds, from its own block on, cp_size − 1 times, element_bytes a number. In the return it
    passes on gradient sums, grad_bytes a number; its own block's sum stays at home. Return a list
    of (forward, replay, return), one per rank.
    """
    # >>> yours
    cp_size, total = len(lengths), sum(lengths)
    width = kv_heads * (head_dim + value_dim)
    rows = []
    for rank in range(cp_size):
        forward = (total - lengths[(rank + 1) % cp_size]) * width * element_bytes
        home = (total - lengths[rank]) * width * grad_bytes
        rows.append((forward, forward, home))
    return rows
    # <<<
