"""Solution of the exercise `merge_tree`."""


def merge_tree(parts, merge):
    """Merge summaries in as few rounds as possible.

    parts is a list of at least one summary, in the order of their keys; merge(left, right) joins
    two neighbors. In each round the first is merged with the second, the third with the fourth and
    so on; one without a neighbor moves up as it is. Return what is left after the last round.
    """
    # >>> yours
    level = list(parts)
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0]
    # <<<
