"""Solution of the exercise `hidden_chunk`."""

import math


def hidden_chunk(flops_per_s, bytes_per_s, group, element_bytes, visible_share):
    """Find the shortest chunk whose transfer hides behind the computation of a block.

    A block of c queries and c keys takes 4 · c² · d flops, d being the width of all query heads;
    visible_share of it is computed, at flops_per_s. Meanwhile c keys and c values arrive, each
    d / group numbers wide and element_bytes a number, at bytes_per_s. Return the smallest integer c
    for which the transfer takes no longer than the computation. Width and c cancel where they can.
    """
    # >>> yours
    flops = 4 * visible_share  # per d and c²
    numbers = 2 / group  # per d and c
    return math.ceil(numbers * element_bytes / bytes_per_s * flops_per_s / flops)
    # <<<
