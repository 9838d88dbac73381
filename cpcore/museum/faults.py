"""The sixteen wrong systems, each one decision away from the right one.

Each docstring names the mistake and the public report whose kind it is; the rebuild is ours, and no
code of the reported systems is in it. `exhibits` says what a visitor sees of each.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from cpcore.checks import Array, index_array
from cpcore.layouts import Layout, from_owned, zigzag
from cpcore.loss import LossSum
from cpcore.masks import Visibility
from cpcore.museum.rings import PairRing
from cpcore.museum.system import Answer, Case, System
from cpcore.schedule import Event
from cpcore.training_pitfalls import (
    averaged_over_ranks,
    local_rotary,
    mean_of_rank_means,
    rank_mean_gradient,
)


class MeanOfBlocks(System):
    """The outputs of the blocks are averaged, whatever their mass (gpu-mode/ring-attention#6)."""

    fault = "equal_weight_mean"


class UnguardedMerge(PairRing):
    """Two pairs that saw no key are merged by -inf - -inf, which is NaN (vllm#27491)."""

    def shift(self, lse: Array) -> Array:
        return lse


class LocalTriangle(System):
    """The causal mask compares places within shards (ring-flash-attention#54)."""

    fault = "local_masks"


class LocalAngles(System):
    """Rotary positions start at 0 on every rank (kin to Megatron-LM#5243)."""

    def turn(self, x: Array, layout: Layout, base: float) -> Array:
        shards = zip(layout.shard(x), layout.owned, strict=True)
        return layout.unshard([local_rotary(shard, pos, base=base) for shard, pos in shards])


class ForeignOrder(System):
    """Results are put back in zigzag order, whatever the layout was (ms-swift#10071)."""

    def restore(self, parts: Sequence[Array], layout: Layout, axis: int) -> Array:
        other = zigzag(layout.seq_len, layout.cp_size)
        return super().restore(parts, other if other.lengths == layout.lengths else layout, axis)


class StaleBlocks(System):
    """The backward pass meets the keys and values of step 0 at every step (diffusers#14265)."""

    fault = "stale_kv"


class BlockSoftmax(System):
    """The backward pass goes through each block's own softmax, weighted (tt-metal#53205)."""

    fault = "weighted_dout"


class ShortReturn(System):
    """Returned gradients stop one hop from their owner (kind of TransformerEngine#2484)."""

    fault = "return_one_hop_short"


class LocalDraw(System):
    """What dropout drops depends on the layout (kin to ring-flash-attention#36)."""

    fault = "local_dropout"


class MeanOfMeans(System):
    """Every rank divides by its own count of labels, then ranks are averaged (Megatron-LM#7513)."""

    def loss(self, parts: Sequence[LossSum]) -> float:
        return mean_of_rank_means(parts)

    def loss_gradient(self, logits: Array, labels: Array, parts: Sequence[LossSum]) -> Array:
        return rank_mean_gradient(logits, labels) / len(parts)


class SixteenBits(System):
    """The running state is rounded to 16 bits at each merge (ring-flash-attention#42)."""

    fault = "sixteen_bit_accumulator"


class UnguardedReplay(PairRing):
    """A row without any key replays -inf - -inf; its zero gradient makes 0 · NaN (pytorch#196170).

    Forward is right, and the row is in no loss.
    """

    def saved(self, lse: Array) -> Array:
        return lse


class TiledHeads(System):
    """Query head h reads key head h mod Hkv instead of h // group (onnx#7274).

    The same for every R, so no comparison of a system with itself can see it.
    """

    def attend(self, case: Case, layout: Layout) -> Answer:
        if case.query.ndim < 3:
            return super().attend(case, layout)
        q_heads, kv_heads = case.query.shape[-3], case.key.shape[-3]
        order = np.argsort(np.arange(q_heads) % kv_heads, kind="stable")
        back = np.argsort(order)
        dout = None if case.dout is None else case.dout[..., order, :, :]
        sorted_case = replace(case, query=case.query[..., order, :, :], dout=dout)
        answer = super().attend(sorted_case, layout)
        dq = None if answer.dq is None else answer.dq[..., back, :, :]
        output = answer.output[..., back, :, :]
        return answer._replace(output=output, lse=answer.lse[..., back, :], dq=dq)


class MeanOverContext(System):
    """Weight gradients of the ranks of one sequence are averaged (kin to SkyRL#1420)."""

    def reduced(self, gradients: Sequence[Array]) -> Array:
        return averaged_over_ranks(gradients)


class SkippedMessage(System):
    """Rank 0 leaves out steps that show it nothing, message and all (kin to tt-metal#55091)."""

    def events(self, layout: Layout, rule: Visibility) -> list[Event]:
        return [
            event
            for event in super().events(layout, rule)
            if event.rank or event.phase == "return" or event.verdict != "empty"
        ]


class DocumentByDocument(System):
    """Zigzag order is listed document by document, then cut into equal shards (pytorch#189902)."""

    def place(self, cu_seqlens: ArrayLike, cp_size: int) -> Layout:
        bounds = index_array("cu_seqlens", cu_seqlens)
        spans = zip(bounds[:-1], np.diff(bounds), strict=True)
        order = [start + zigzag(int(length), cp_size).permutation for start, length in spans]
        return from_owned(np.array_split(np.concatenate(order), cp_size))
