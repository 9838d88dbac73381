"""Solution of the exercise `ring_attention`."""

from cpcore import attention_chunk_stats, empty_stats, finalize, merge_chunk_stats


def ring_attention(query, key_chunks, value_chunks):
    """Attention of all queries over keys that arrive chunk by chunk, exactly as over all at once.

    query (…, Q, D); key_chunks and value_chunks are lists of arrays (…, c, D) and (…, c, Dv), whose
    lengths c may differ. Return the output (…, Q, Dv) in the query's dtype. Never hold the scores
    of all keys at once, and keep the running state in at least float32. The imported functions are
    those of the package; your own `attention_chunk_stats` and `merge_chunk_stats` do as well.
    """
    # >>> yours
    acc = empty_stats(query.shape[:-1], value_chunks[0].shape[-1], query.dtype)
    for key_chunk, value_chunk in zip(key_chunks, value_chunks, strict=True):
        chunk = attention_chunk_stats(query, key_chunk, value_chunk)
        acc = merge_chunk_stats(acc, chunk)
    return finalize(acc, query.dtype)[0]
    # <<<
