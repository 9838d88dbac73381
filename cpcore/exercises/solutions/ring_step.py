"""Solution of the exercise `ring_step`."""


def ring_step(rank, step, cp_size):
    """Say what one rank does at one step of the forward pass around a ring.

    Ranks count from 0 to cp_size − 1, steps as well. Blocks move from each rank to the next, the
    last one's to rank 0; every rank starts with its own, and no block moves after the last step.
    Return (owner, send_to, recv_from): whose block the rank computes with, where it sends that
    block after this step, and from whom it received it; None where there is no message.
    """
    # >>> yours
    owner = (rank - step) % cp_size
    send_to = (rank + 1) % cp_size if step < cp_size - 1 else None
    recv_from = (rank - 1) % cp_size if step > 0 else None
    return owner, send_to, recv_from
    # <<<
