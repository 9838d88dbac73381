"""Query heads that share a key head, put side by side.

Owns the fold that lets grouped heads share keys in one product, without repeating any key.
"""

from cpcore.checks import Array


def per_kv_head(rows: Array, shared: Array) -> Array:
    """Rows of all query heads that read one key head, side by side, so that no key is repeated."""
    if rows.ndim == 2 or rows.shape[-3] == shared.shape[-3]:
        return rows
    heads, group = shared.shape[-3], rows.shape[-3] // shared.shape[-3]
    # (…, Hq, Q, n) -> (…, Hkv, group·Q, n)
    return rows.reshape(*rows.shape[:-3], heads, group * rows.shape[-2], rows.shape[-1])
