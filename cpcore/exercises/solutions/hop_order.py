"""Solution of the exercise `hop_order`."""


def hop_order(rank, cp_size):
    """Order the two blocking calls of a rank so that one hop around the ring never hangs.

    Every rank sends to the next rank and receives from the one before. A send returns only when the
    other side receives, and a rank makes one call at a time. Return ("send", "receive") or
    ("receive", "send"), so that the hop ends after at most 3 rounds for any cp_size; a single rank
    has no message: return ().
    """
    # >>> yours
    if cp_size == 1:
        return ()
    return ("send", "receive") if rank % 2 == 0 else ("receive", "send")
    # <<<
