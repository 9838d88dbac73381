"""Attention over a sequence that is split across processes: one autograd function.

Owns the public call and the two passes of a rank: send, compute, merge, wait. The forward pass
saves the rank's own q, k, v, its output and one lse per row; no probability and no foreign key.
"""

from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from cpcore.checks import expected
from cpcore.distributed.arguments import Arrays, Call, checked_call
from cpcore.distributed.block_ops import BlockOp
from cpcore.distributed.contract import agree
from cpcore.distributed.plan import Packing, Turn, plan
from cpcore.distributed.protocols import Exchange
from cpcore.distributed.rank import Block, RankAttention, Setting
from cpcore.distributed.state import accumulate_dtype
from cpcore.distributed.transport import GroupTransport, Transport
from cpcore.dropout import Dropout
from cpcore.layouts import Layout
from cpcore.masks import Visibility


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

    group: a process group, None = all processes, or a `Transport`. block_op: how full and
    triangular pieces are computed, default the fused kernel of the device where it applies.

    Shapes: query (B, Hq, c, D), key (B, Hkv, c, D), value (B, Hkv, c, Dv), c = layout.lengths[r];
        result (B, Hq, c, Dv) in query's dtype. Query head h reads key head h // (Hq / Hkv).
    Raises: ValueError on every rank, before any payload, if a rank's arguments are wrong or two
        ranks disagree; PeerError (a RuntimeError) for a message that fails or comes too late.
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
        plan(call.layout, call.visibility, call.protocol, call.rank)  # refuses what it cannot do
        facts = dict(call.facts)
    except ValueError as error:
        problem = error
    agree(transport, {"phase": "forward", **facts}, problem)
    assert call is not None
    out: Tensor = _Attention.apply(*arrays, call, exchange)  # type: ignore[no-untyped-call]
    return out


class _Attention(torch.autograd.Function):
    """Forward over the events of phase "forward", backward over those of "replay" and "return"."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, call: Call, exchange: type[Exchange]
    ) -> Tensor:
        q, k, v = (call.clean(x) for x in (q, k, v))
        rank, moves = _rank(call, q, v), _moves(call, exchange, k, v)
        rank.start()
        own = moves.kv.pack(k, v)
        for turn, message in moves.blocks(moves.plan.forward, own):
            rank.attend(_block(moves.kv, turn, message))
        out, lse = rank.finish()
        if torch.isnan(lse).any() or torch.isposinf(lse).any():
            raise expected("query and key", f"finite scores in {lse.dtype}", "an overflow")
        ctx.call, ctx.exchange = call, exchange
        ctx.save_for_backward(q, k, v, out, lse)
        return out.to(q.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        call: Call = ctx.call
        _agree_again(call, dout)
        q, k, v, out, lse = ctx.saved_tensors
        rank, moves = _rank(call, q, v), _moves(call, ctx.exchange, k, v)
        rank.start_replay(call.clean(dout), out, lse)
        own, home = moves.kv.pack(k, v), moves.homecoming()
        for turn, message in moves.blocks(moves.plan.replay, own):
            share = moves.grad_kv.zeros(len(turn.positions))
            dk, dv = moves.grad_kv.open(share, len(turn.positions))
            rank.replay(_block(moves.kv, turn, moves.replayed(message, own)), dk, dv)
            home.give(turn, share)
        dk, dv = moves.grad_kv.open(home.finish(), k.shape[2])
        return rank.dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), None, None


def _rank(call: Call, q: Tensor, v: Tensor) -> RankAttention:
    """The rows of the rank that calls, by their global positions."""
    heads = np.arange(q.shape[1])
    setting = Setting(call.rule, call.scale, call.ops, call.dropout, heads)
    return RankAttention(q, call.layout.owned[call.rank], v.shape[-1], setting)


def _moves(call: Call, exchange: type[Exchange], k: Tensor, v: Tensor) -> Exchange:
    """Its messages: keys and values in their dtype, gradients in the accumulate dtype."""
    kv = Packing(k.shape[0], k.shape[1], k.shape[3], v.shape[3], k.dtype, k.device)
    grad_kv = kv._replace(dtype=accumulate_dtype(k.dtype))
    turns = plan(call.layout, call.visibility, call.protocol, call.rank)
    return exchange(call.transport, turns, kv, grad_kv)


def _block(kv: Packing, turn: Turn, message: Tensor) -> Block:
    return Block(*kv.open(message, len(turn.positions)), turn.positions, turn.pieces)


def _agree_again(call: Call, dout: Tensor) -> None:
    """All ranks have come to the backward pass of the same call, with usable numbers."""
    problem = None
    try:
        call.check_finite("dout", dout)
    except ValueError as error:
        problem = error
    agree(call.transport, {"phase": "backward", **call.facts}, problem)
