"""Who may see whom, one pair at a time: the independent twin of `Visibility.block`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def may_attend(i: int, j: int, rule: dict[str, Any]) -> bool:
    """Whether the query at position i may attend to the key at position j."""
    if rule.get("causal", True) and j > i:
        return False
    window = rule.get("window")
    if window is not None and abs(i - j) >= window:
        return False
    documents = rule.get("documents")
    if documents is not None and (documents[i] == -1 or documents[i] != documents[j]):
        return False
    relation = rule.get("relation")
    return relation is None or bool(relation[i][j])


def double_loop(
    q_pos: Sequence[int], k_pos: Sequence[int], rule: dict[str, Any]
) -> NDArray[np.bool_]:
    """bool (Q, K) from `may_attend`."""
    table = np.zeros((len(q_pos), len(k_pos)), bool)
    for row, i in enumerate(q_pos):
        for column, j in enumerate(k_pos):
            table[row, column] = may_attend(int(i), int(j), rule)
    return table
