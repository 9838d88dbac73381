"""How one piece of a block is computed: fused kernels where they apply, plain math elsewhere.

Owns the kernels' traps. They take no mask but the aligned triangle, need Dv = D, die on 0 queries
or keys, and return an lse of 0 for a row that sees nothing: `blocks` hands them neither empty
pieces nor such rows; what overflows to -inf is found here. They hide scores before they scale
them, and -inf times a scale of -1 or 0 is inf or NaN. They take a row's numbers for neighbors in
memory, whatever its stride. 16-bit inputs are widened on CPUs, so that only the last cast rounds
to 16.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from cpcore.checks import expected
from cpcore.distributed.blocks import Kind
from cpcore.distributed.scores import dense, grouped, overflow_shown, scores_of, wide
from cpcore.distributed.state import Stats, finite_or_zero

aten = torch.ops.aten
Gradients = tuple[Tensor, Tensor, Tensor]


class Saved(NamedTuple):
    """What the backward pass knows of some rows, over all their keys.

    Shapes: dout and out (B, Hq, Q, Dv), lse (B, Hq, Q).
    """

    dout: Tensor
    out: Tensor
    lse: Tensor


class Rule(NamedTuple):
    """What hides pairs of a piece. visible and keep broadcast to (B, Hq, Q, K), None = all."""

    scale: float
    triangle: bool = False
    visible: Tensor | None = None
    keep: Tensor | None = None


class BlockOp(Protocol):
    """Computes pieces of the kinds it names, forward and backward.

    Results of other operations than ours are copied, into the accumulate dtype: ours are fresh, and
    are changed in place.
    """

    name: str
    kinds: frozenset[Kind]

    def takes(self, q: Tensor, v: Tensor) -> bool:
        """Whether arrays of this device, dtype and width can be computed."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, rule: Rule) -> Stats:
        """The summary of the keys for every row."""

    def gradients(self, q: Tensor, k: Tensor, v: Tensor, saved: Saved, rule: Rule) -> Gradients:
        """What the piece adds to dq, dk and dv."""


class Math:
    """Scores in full: any mask, dropout, any width and device."""

    name = "math"
    kinds: frozenset[Kind] = frozenset(("full", "triangle", "masked"))

    def takes(self, q: Tensor, v: Tensor) -> bool:
        """Always."""
        return True

    def attend(self, q: Tensor, k: Tensor, v: Tensor, rule: Rule) -> Stats:
        """As `cpcore.attention_chunk_stats`."""
        scores = scores_of(q, k, rule.scale, rule.visible)
        top = scores.amax(dim=-1)
        weights = scores.sub_(finite_or_zero(top)[..., None]).exp_()
        total = weights.sum(dim=-1)
        kept = weights if rule.keep is None else weights * rule.keep
        output = grouped(kept, k) @ wide(v)  # (B, Hkv, group·Q, Dv)
        return Stats(output.reshape(*q.shape[:-1], v.shape[-1]), total, top)

    def gradients(self, q: Tensor, k: Tensor, v: Tensor, saved: Saved, rule: Rule) -> Gradients:
        """As `cpcore.replay.block_gradients`: exp(scores - lse) is this part of the softmax."""
        probs = (
            scores_of(q, k, rule.scale, rule.visible)
            .sub_(finite_or_zero(saved.lse)[..., None])
            .exp_()
        )
        # One delta per row stands for all its keys; fused kernels find it by themselves.
        delta = (wide(saved.dout) * saved.out).sum(dim=-1)
        dout = grouped(wide(saved.dout), k)
        dprobs = (dout @ wide(v).mT).reshape(probs.shape)
        dropped = probs
        if rule.keep is not None:
            dprobs, dropped = dprobs * rule.keep, probs * rule.keep
        dscores = grouped(dprobs.sub_(delta[..., None]).mul_(probs), k)
        dq = (dscores @ wide(k)).reshape(q.shape).mul_(rule.scale)
        dk = (dscores.mT @ grouped(wide(q), k)).mul_(rule.scale)
        return dq, dk, grouped(dropped, k).mT @ dout


class FlashCpu:
    """The fused CPU kernel of torch."""

    name = "flash on CPU"
    kinds: frozenset[Kind] = frozenset(("full", "triangle"))

    def takes(self, q: Tensor, v: Tensor) -> bool:
        """CPU tensors with Dv = D."""
        return q.device.type == "cpu" and v.shape[-1] == q.shape[-1]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, rule: Rule) -> Stats:
        """The kernel's output is finished: sum 1, relative to its lse."""
        q, k, v = (dense(wide(x)) for x in (q, k, v))
        out, lse = aten._scaled_dot_product_flash_attention_for_cpu(
            q, k, v, 0.0, rule.triangle, scale=rule.scale
        )
        if not lse.all():
            lse = overflow_shown(q, k, lse, rule.scale, rule.triangle)
        return Stats(out, torch.ones_like(lse), lse)

    def gradients(self, q: Tensor, k: Tensor, v: Tensor, saved: Saved, rule: Rule) -> Gradients:
        """With output and lse of the whole row the kernel finds this piece's share."""
        arrays = (dense(wide(x)) for x in (saved.dout, q, k, v, saved.out))
        dq, dk, dv = aten._scaled_dot_product_flash_attention_for_cpu_backward(
            *arrays, saved.lse, 0.0, rule.triangle, scale=rule.scale
        )
        return dq, dk, dv


class FlashCuda:
    """The fused CUDA kernel of torch: 16-bit inputs, widths that are a multiple of 8 up to 256."""

    name = "flash on CUDA"
    kinds: frozenset[Kind] = frozenset(("full", "triangle"))

    def takes(self, q: Tensor, v: Tensor) -> bool:
        """CUDA tensors of 16 bits with Dv = D and a width the kernel knows."""
        width = q.shape[-1]
        fits = v.shape[-1] == width and width % 8 == 0 and width <= 256
        return q.is_cuda and q.dtype in (torch.float16, torch.bfloat16) and fits

    def attend(self, q: Tensor, k: Tensor, v: Tensor, rule: Rule) -> Stats:
        """As on the CPU, widened after the kernel: it rounds each piece to 16 bits."""
        out, lse, *_ = aten._scaled_dot_product_flash_attention(
            dense(q), dense(k), dense(v), 0.0, rule.triangle, False, scale=rule.scale
        )
        return Stats(wide(out), torch.ones_like(lse), lse)

    def gradients(self, q: Tensor, k: Tensor, v: Tensor, saved: Saved, rule: Rule) -> Gradients:
        """Lengths are in the shapes and nothing is dropped: the kernel reads no random state."""
        q, k, v = dense(q), dense(k), dense(v)
        dout, out = dense(saved.dout.to(q.dtype)), dense(saved.out.to(q.dtype))
        state = torch.zeros(2, dtype=torch.uint64, device=q.device)
        dq, dk, dv = aten._scaled_dot_product_flash_attention_backward(
            dout, q, k, v, out, saved.lse.contiguous(), None, None, q.shape[-2], k.shape[-2],
            0.0, rule.triangle, state, state, scale=rule.scale,
        )  # fmt: skip
        return wide(dq), wide(dk), wide(dv)


MATH, FLASH_CPU, FLASH_CUDA = Math(), FlashCpu(), FlashCuda()


def fresh(op: BlockOp, results: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """The results of an operation, as arrays that no one else holds."""
    if op in (MATH, FLASH_CPU, FLASH_CUDA):
        return tuple(results)
    return tuple(wide(x).clone(memory_format=torch.contiguous_format) for x in results)


def choose(
    block_op: BlockOp | None, q: Tensor, v: Tensor, scale: float, dropout: bool
) -> Mapping[Kind, BlockOp]:
    """The operation for each kind of piece, plain math where the wanted one does not apply.

    Raises: ValueError for a block_op that cannot compute these arrays.
    """
    if block_op is not None and not block_op.takes(q, v):
        received = f"{block_op.name} for {q.dtype} on {q.device}, widths {q.shape[-1], v.shape[-1]}"
        raise expected("block_op", "an operation that takes these arrays", received)
    fused: tuple[BlockOp, ...] = (FLASH_CPU, FLASH_CUDA)
    wanted = fused if block_op is None else (block_op,)
    plain = dropout or scale <= 0
    usable = [op for op in wanted if op.takes(q, v) and not (plain and op in fused)]
    kinds: tuple[Kind, ...] = ("full", "triangle", "masked")
    return {kind: next((op for op in usable if kind in op.kinds), MATH) for kind in kinds}
