"""Two arrays in one message: what is packed is opened again, in the order that is promised."""

import pytest
import torch
from torch import Tensor

from cpcore.distributed.plan import Packing


@pytest.mark.parametrize("by_head", [True, False])
@pytest.mark.parametrize("tokens", [0, 1, 5])
def test_a_message_opens_to_what_was_packed(by_head: bool, tokens: int) -> None:
    packing = Packing(2, 3, 4, 6, torch.float64, torch.device("cpu"), by_head)
    k, v = torch.randn(2, 3, tokens, 4).double(), torch.randn(2, 3, tokens, 6).double()
    message = packing.pack(k, v)
    assert message.numel() == packing.token * tokens == 2 * 3 * tokens * (4 + 6)
    for room, array in zip(packing.open(message, tokens), (k, v), strict=True):
        assert torch.equal(room, array)


def side_by_side(array: Tensor, axis: int) -> bool:
    """Whether neighbors along the axis are neighbors in memory, one row of numbers apart."""
    return array.stride(axis) == array.shape[-1] and array.stride(-1) == 1


def test_tokens_of_a_head_or_heads_of_a_token_lie_side_by_side() -> None:
    packing = Packing(2, 3, 4, 6, torch.float32, torch.device("cpu"), by_head=True)
    message = packing.empty(5)
    assert all(side_by_side(x, axis=2) for x in packing.open(message, 5))
    together = packing._replace(by_head=False).open(message, 5)
    assert all(side_by_side(x, axis=1) for x in together)
    room, _ = packing.open(message, 5)
    room.fill_(7)  # a view: what is written into it is in the message
    assert message[:120].eq(7).all()
