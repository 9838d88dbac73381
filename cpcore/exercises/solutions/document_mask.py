"""Solution of the exercise `document_mask`."""


def document_mask(documents, q_pos, k_pos):
    """Mask a block of a packed sequence.

    documents (S,) holds one id per global position; −1 is padding, which sees nothing and is seen
    by none. q_pos (Q,) and k_pos (K,) are global positions. Return a bool array (Q, K), True where
    the query sees the key: same document, and not in its future.
    """
    # >>> yours
    q_doc, k_doc = documents[q_pos], documents[k_pos]
    same = q_doc[:, None] == k_doc[None, :]
    real = q_doc[:, None] != -1
    return same & real & (k_pos[None, :] <= q_pos[:, None])
    # <<<
