"""Peers: torch's own ring and its load balancers, private names of the pinned version.

Its ring works on shards of equal length in the order of zigzag, causal only, with the CPU kernel
passed in.
"""

from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor.experimental._context_parallel import _attention as peer
from torch.distributed.tensor.experimental._context_parallel import _load_balancer as balance

from cpcore import Visibility, per_document, zigzag
from cpcore.distributed import GroupTransport, context_parallel_attention, launch

pytestmark = pytest.mark.peer
SEQ_LEN, SHAPE = 48, (2, 3, 48, 8)
SCALE = 8**-0.5


def shards(rank: int, cp_size: int) -> list[Tensor]:
    """q, k, v and dout of one rank, in float64."""
    rng = np.random.default_rng(9)
    index = zigzag(SEQ_LEN, cp_size).owned[rank]
    return [torch.from_numpy(rng.standard_normal(SHAPE)[:, :, index]) for _ in range(4)]


def by_torch(arrays: list[Tensor]) -> list[Tensor]:
    """(output, dq, dk, dv) of this rank by torch's ring."""
    q, k, v, dout = arrays
    aten = torch.ops.aten
    forward = partial(aten._scaled_dot_product_flash_attention_for_cpu, scale=SCALE)
    backward = aten._scaled_dot_product_flash_attention_for_cpu_backward
    group: Any = dist.group.WORLD
    out, lse, *_ = peer._templated_ring_attention(group, 2, forward, q, k, v, is_causal=True)
    gradients = peer._templated_ring_attention_backward(
        group, 2, backward, grad_out=dout, grad_out_name="grad_out", query=q, key=k, value=v,
        out=out, logsumexp=lse, is_causal=True, dropout_p=0.0, scale=SCALE,
    )  # fmt: skip
    return [out, *gradients[:3]]


def compare(rank: int, cp_size: int) -> tuple[list[float], int, int]:
    """The largest differences, the exchanges of torch's ring, and those of ours."""
    arrays = shards(rank, cp_size)
    exchanges = []
    exchange = peer._AllToAllRotater.exchange_buffers

    def counted(self: Any, buffer: Tensor) -> None:
        exchanges.append(buffer.numel())
        exchange(self, buffer)

    peer._cp_options.convert_to_f32 = False  # float64 stays float64
    peer.set_rotate_method("alltoall")
    with patch.object(peer._AllToAllRotater, "exchange_buffers", counted):
        wanted = by_torch(arrays)
    transport = GroupTransport(recording=True)
    q, k, v = (x.clone().requires_grad_() for x in arrays[:3])
    out = context_parallel_attention(
        q, k, v, layout=zigzag(SEQ_LEN, cp_size), visibility=Visibility(), group=transport
    )
    out.backward(arrays[3])
    ours = [out.detach(), *(x.grad for x in (q, k, v) if x.grad is not None)]
    errors = [float((a - b).abs().max()) for a, b in zip(ours, wanted, strict=True)]
    sent = [record for record in transport.records if record.direction == "sent"]
    return errors, len(exchanges), len(sent)


@pytest.mark.parametrize("cp_size", [2, 3, 4])
def test_output_and_gradients_equal_those_of_the_ring_of_torch(cp_size: int) -> None:
    """A ring of R needs 3R - 3 messages a rank; torch's sends the own gradient around too."""
    for errors, theirs, ours in launch(compare, cp_size, cp_size, time_limit_s=60):
        # Both round some hundred sums of numbers of size 1 in float64.
        assert max(errors) < 1e-13
        assert ours == 3 * cp_size - 3
        assert theirs == 3 * cp_size - 2


@pytest.mark.parametrize("cp_size", [1, 2, 3, 4])
def test_zigzag_is_the_head_tail_balancer_of_torch(cp_size: int) -> None:
    balancer = balance._HeadTailLoadBalancer(48, cp_size, "cpu")
    layout = zigzag(48, cp_size)
    assert np.array_equal(balancer._generate_indices()[0], layout.permutation)
    assert np.array_equal(balancer._generate_indices(restore=True)[0], layout.inverse)


@pytest.mark.parametrize("cp_size", [1, 2, 4])
def test_zigzag_per_document_owns_what_the_balancer_of_torch_assigns(cp_size: int) -> None:
    """Torch cuts each document into the shards of all ranks and stores document by document."""
    lengths = [16, 8, 24]
    balancer = balance._PerDocumentHeadTailLoadBalancer([lengths], cp_size, "cpu")
    stored = balancer._generate_indices()[0].numpy()
    layout = per_document([0, 16, 24, 48], cp_size)
    for start, length, cut in zip([0, 16, 24], lengths, range(3), strict=True):
        document = stored[start : start + length].reshape(cp_size, -1)
        for rank, owned in enumerate(layout.owned):
            mine = owned[(owned >= start) & (owned < start + length)]
            assert np.array_equal(mine, document[rank]), f"document {cut}, rank {rank}"
