"""Exhibits whose backward pass, loss or precision is wrong."""

from cpcore.museum import faults, symptoms
from cpcore.museum.exhibits import Exhibit, Source, github

BACKWARD = (
    Exhibit(
        id="stale",
        title="Equal at the first step",
        story="The first loss agrees to the last digit. Plain gradient descent on one rank and on "
        "three.",
        probe=symptoms.curve,
        option="the backward pass reuses the first keys",
        decoys=("context", "softmax", "return", "means"),
        check="dq_dk",
        cause="Forward, the keys travel. Backward, every step works on the keys and values that "
        "were saved in step 0: the rank's own.",
        repair="Replay each step with the block that arrives in it.",
        system=faults.StaleBlocks(),
        source=Source(
            "diffusers#14265",
            "diffusers_14265",
            github("huggingface/diffusers", 14265),
            "2026-07-21",
            "A library: right forward, silent wrong gradients for any ring of more than one rank.",
        ),
    ),
    Exhibit(
        id="softmax",
        title="One gradient of three",
        story="One query with dout 1, keys 0 and 1, values 0 and 1. Outputs agree.",
        probe=symptoms.three_gradients,
        option="each block goes back through its own softmax",
        decoys=("stale", "return", "context", "mean"),
        check="dq_dk",
        cause="dout is weighted by the block's mass, and the block goes back through its own "
        "output and lse. That weight depends on the keys too, and its gradient is forgotten. dV "
        "is exact.",
        repair="Replay with the row's lse and with delta from the row's output.",
        system=faults.BlockSoftmax(),
        source=Source(
            "tt-metal#53205",
            "tt_metal_53205",
            github("tenstorrent/tt-metal", 53205),
            "2026-08-15",
            "A training library: exact dV beside biased dQ and dK, on every ring.",
        ),
    ),
    Exhibit(
        id="return",
        title="The total is right",
        story="dV of twelve causal keys, added up. The sum over all keys is right, and so is the "
        "loss.",
        probe=symptoms.by_owner,
        option="gradients stop one hop from home",
        decoys=("order", "stale", "softmax", "context"),
        check="one_hot",
        cause="The sums for dK and dV make one hop too few. Each arrives at the rank before its "
        "owner, which takes it for its own.",
        repair="R − 1 hops if the owner's share waits at home, R if it travels along.",
        system=faults.ShortReturn(),
        source=Source(
            "TransformerEngine#2484",
            "te_2484",
            github("NVIDIA/TransformerEngine", 2484),
            "2025-12-05",
            "A question about a ring's backward loop: is a send of dK and dV missing?",
        ),
    ),
    Exhibit(
        id="draw",
        title="Four losses for one seed",
        story="Dropout with a fixed seed, before any training.",
        probe=symptoms.one_seed,
        option="dropout is drawn by local index",
        decoys=("means", "bits", "angles", "triangle"),
        check="dropout",
        cause="What is dropped depends on places within shards, so every rank count draws other "
        "noise. No two of these runs can be compared.",
        repair="Decide by a hash of (seed, head, global i, global j).",
        system=faults.LocalDraw(),
        source=Source(
            "ring-flash-attention#36",
            "rfa_36",
            github("zhuzilin/ring-flash-attention", 36),
            "2024-05-20",
            "Backward did not get the random state of forward; dropout is hard to support, says "
            "the answer.",
        ),
    ),
    Exhibit(
        id="means",
        title="A loss that jumps with the split",
        story="Four tokens, losses 16 in all, on one rank and on two.",
        probe=symptoms.reported,
        option="means of ranks are averaged",
        decoys=("context", "draw", "mean", "bits"),
        check="loss",
        cause="Every rank divides by its own count of labels, and the means are averaged. A token "
        "weighs more the fewer neighbors it has.",
        repair="Add sums, add counts, divide once.",
        system=faults.MeanOfMeans(),
        source=Source(
            "Megatron-LM#7513",
            "megatron_7513",
            github("NVIDIA/Megatron-LM", 7513, "pull"),
            "2026-09-19",
            "A training library: local counts as divisors change the objective when masks are "
            "unequal.",
        ),
    ),
    Exhibit(
        id="bits",
        title="A little worse each time",
        story="float32 inputs, 128 positions, full attention, cut ever finer.",
        probe=symptoms.growth,
        option="partial results are rounded to 16 bits",
        decoys=("mean", "merge", "angles", "softmax"),
        check="drift",
        cause="The running state passes through 16 bits at every merge, so every rank adds a "
        "rounding.",
        repair="Accumulate in float32 at least, and cast once, at the end.",
        system=faults.SixteenBits(),
        source=Source(
            "ring-flash-attention#42",
            "rfa_42",
            github("zhuzilin/ring-flash-attention", 42),
            "2024-06-27",
            "Errors grow with the world size, because blocks return 16-bit results.",
        ),
    ),
    Exhibit(
        id="padding",
        title="One slot that does not count",
        story="Three real positions and a padded slot. Its row is in no loss, its dout is 0.",
        probe=symptoms.padded,
        option="a row without keys is replayed",
        decoys=("merge", "means", "return", "stale"),
        check="padding",
        cause="The padded row has lse −∞, and exp(−∞ − (−∞)) is NaN. Its dout is 0, but 0 · NaN is "
        "NaN, and dV sums over rows.",
        repair="Subtract 0 where lse is −∞; then the row's probabilities are 0.",
        system=faults.UnguardedReplay(),
        source=Source(
            "pytorch#196170",
            "pytorch_196170",
            github("pytorch/pytorch", 196170, "pull"),
            "2026-09-06",
            "A framework: one fully masked row, outside the loss, made all shared gradients NaN.",
        ),
    ),
    Exhibit(
        id="context",
        title="The gradient shrinks",
        story="One sequence, the first step, the same weights.",
        probe=symptoms.lengths,
        option="parts of a gradient are averaged",
        decoys=("means", "stale", "softmax", "return"),
        check="weights",
        cause="The ranks of one sequence hold parts of the gradient. Data parallelism takes them "
        "for estimates and averages: too small by R.",
        repair="Sum over context ranks, average over sequences only.",
        system=faults.MeanOverContext(),
        source=Source(
            "SkyRL#1420",
            "skyrl_1420",
            github("NovaSky-AI/SkyRL", 1420, "pull"),
            "2026-03-31",
            "A training library: a correction factor left out the context ranks, 1/R too small.",
        ),
    ),
)
