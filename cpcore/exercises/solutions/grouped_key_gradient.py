"""Solution of the exercise `grouped_key_gradient`."""


def grouped_key_gradient(query, dscores, kv_heads):
    """Find the gradient of keys that several query heads share.

    query is (Hq, Q, D) and dscores (Hq, Q, K), the gradient by the products query · key. There are
    kv_heads key heads, a divisor of Hq; query head h reads key head h // group with group =
    Hq / kv_heads. Return dk of shape (kv_heads, K, D).
    """
    # >>> yours
    shares = dscores.swapaxes(-1, -2) @ query  # (Hq, K, D)
    group = query.shape[0] // kv_heads
    folded = shares.reshape(kv_heads, group, *shares.shape[1:])
    return folded.sum(axis=1)
    # <<<
