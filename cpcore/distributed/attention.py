"""Attention over a sequence that is split across processes: one autograd function.

Owns the public call, its checks before any payload is used, and the node of autograd. The two
passes of a rank are `passes` and, by heads, `heads`.
"""

import dataclasses
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from cpcore.checks import expected
from cpcore.distributed.arguments import Arrays, Call, checked_call
from cpcore.distributed.block_ops import BlockOp
from cpcore.distributed.contract import Agreement
from cpcore.distributed.group import GroupTransport
from cpcore.distributed.heads import HeadPasses
from cpcore.distributed.passes import BlockPasses
from cpcore.distributed.protocols import Exchange
from cpcore.distributed.transport import Transport
from cpcore.dropout import Dropout
from cpcore.layouts import Layout
from cpcore.masks import Visibility

Passes = BlockPasses | HeadPasses


def context_parallel_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    layout: Layout,
    visibility: Visibility | None,
    group: dist.ProcessGroup | Transport | None = None,
    protocol: str = "ring",
    scale: float | None = None,
    dropout: Dropout | None = None,
    block_op: BlockOp | None = None,
) -> Tensor:
    """The rank's rows of exact attention over the whole sequence; differentiable.

    Called by every rank of the group with its own shard, in the order in which the layout stores
    it: row i of rank r is position layout.owned[r][i]. Keys and values travel while blocks are
    computed; in the backward pass they travel again, and each owner's gradients come home. Every
    rank must run the backward pass, also one without tokens or whose rows see nothing.

    protocol: one of those of `schedule`, or "all_to_all", which splits heads instead of keys.
    group: a process group, None = all processes, or a `Transport`. block_op: how full and
    triangular pieces are computed, default the fused kernel of the device where it applies.

    Shapes: query (B, Hq, c, D), key (B, Hkv, c, D), value (B, Hkv, c, Dv), c = layout.lengths[r];
        result (B, Hq, c, Dv) in query's dtype, also under autocast. Query head h reads key head
        h // (Hq / Hkv).
    Raises: ValueError on every rank, before any payload is used, if a rank's arguments are wrong
        or two ranks disagree. PeerError (a RuntimeError) for a message that fails or comes too
        late.
    Source: Liu et al. 2023, Ring Attention (arXiv:2310.01889), for `ring`.
    """
    transport = group if isinstance(group, Transport) else GroupTransport(group)
    arrays = (query, key, value)
    settings = layout, visibility, protocol, scale, dropout, block_op
    return attention_with(Exchange, arrays, transport, *settings)


def attention_with(
    exchange: type[Exchange], arrays: Arrays, transport: Transport, *settings: Any
) -> Tensor:
    """The attention of ranks that exchange in this way: the right one, or one with a fault."""
    call, facts, problem = None, {}, None
    try:
        call = checked_call(arrays, transport, *settings)
        passes = _passes(call, exchange, arrays)  # refuses what the protocol cannot do
        facts = dict(call.facts)
    except ValueError as error:
        problem = error
    agreement = Agreement(transport, "forward", facts, problem)
    assert call is not None
    # Two calls may look alike: ranks that run their backward passes in another order must not mix.
    call = dataclasses.replace(call, facts={**facts, "call": f"number {agreement.number}"})
    out: Tensor = _Attention.apply(*arrays, call, passes, agreement)  # type: ignore[no-untyped-call]
    return out


def _passes(call: Call, exchange: type[Exchange], arrays: Arrays) -> Passes:
    q, k, v = arrays
    if call.protocol == "all_to_all":
        if exchange is not Exchange:
            raise expected("fault", "none with all_to_all: no blocks travel", exchange.__name__)
        return HeadPasses(call, q, k)
    return BlockPasses(call, exchange, k, v)


class _Attention(torch.autograd.Function):
    """One node of autograd for both passes, whatever the protocol."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        call: Call,
        passes: Passes,
        agreement: Agreement,
    ) -> Tensor:
        """The rank's rows of the output."""
        with agreement, torch.autocast(q.device.type, enabled=False):
            out, saved = passes.forward(agreement, call.clean(q), call.clean(k), call.clean(v))
        lse = saved[-1]
        if not (lse < torch.inf).all():  # NaN is not
            raise expected("query and key", f"finite scores in {lse.dtype}", "an overflow")
        ctx.call, ctx.passes = call, passes
        ctx.save_for_backward(*saved)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the rank's own q, k and v."""
        call, problem = ctx.call, None
        try:
            call.check_finite("dout", dout)
        except ValueError as error:
            problem = error
        saved = ctx.saved_tensors  # raises if the query was changed in place: before any word
        agreement = Agreement(call.transport, "backward", call.facts, problem)
        with agreement, torch.autocast(dout.device.type, enabled=False):
            gradients = ctx.passes.backward(agreement, saved, call.clean(dout))
        return (*(gradient.to(dout.dtype) for gradient in gradients), None, None, None)
