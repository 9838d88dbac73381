"""What chapter 8 says of other people's code, asked of that code."""

import numpy as np
import pytest
import torch
from torch.distributed.tensor.experimental._context_parallel._load_balancer import (
    _HeadTailLoadBalancer,
    _PerDocumentHeadTailLoadBalancer,
)

from cpcore import per_document, zigzag

CPU = torch.device("cpu")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
def test_head_tail_of_pytorch_is_zigzag_and_its_way_back_the_inverse(ranks: int) -> None:
    balancer = _HeadTailLoadBalancer(6 * ranks, ranks, CPU)
    ours = zigzag(6 * ranks, ranks)
    assert balancer._generate_indices()[0].tolist() == ours.permutation.tolist()
    assert balancer._generate_indices(restore=True)[0].tolist() == ours.inverse.tolist()


def test_the_pinned_pytorch_lists_indices_document_by_document_and_so_loses_the_balance() -> None:
    """pytorch#189902 repairs it; then the trap of the chapter needs another version number."""
    lengths = [4, 12]
    order = _PerDocumentHeadTailLoadBalancer([lengths], 2, CPU)._generate_indices()[0].numpy()
    assert order.tolist() == [
        *zigzag(4, 2).permutation.tolist(),
        *(4 + zigzag(12, 2).permutation).tolist(),
    ]
    keys_seen = [
        row - start + 1 for start, n in ((0, 4), (4, 12)) for row in range(start, start + n)
    ]
    assert np.take(keys_seen, order).reshape(2, 8).sum(axis=1).tolist() == [26, 62]
    ours = per_document([0, 4, 16], 2)
    assert [sum(keys_seen[row] for row in owned) for owned in ours.owned] == [44, 44]
