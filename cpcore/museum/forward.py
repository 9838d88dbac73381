"""Exhibits whose forward pass is wrong, or late."""

from cpcore.museum import faults, symptoms
from cpcore.museum.exhibits import Exhibit, Source, github

FORWARD = (
    Exhibit(
        id="mean",
        title="Two keys, two answers",
        story="Scores 0 and ln 3, values 0 and 4. Then the two keys are put on two ranks.",
        probe=symptoms.two_keys,
        option="outputs of blocks are averaged",
        decoys=("merge", "heads", "bits", "order"),
        check="heads",
        cause="Each block finishes its own softmax and the outputs are averaged. Blocks of unequal "
        "mass get equal weight; the lse is not asked.",
        repair="Send (max, sum, output), or (output, lse), and weight by mass: 1 · 0 + 3 · 4, over "
        "4.",
        system=faults.MeanOfBlocks(),
        source=Source(
            "gpu-mode/ring-attention#6",
            "gpu_mode_6",
            github("gpu-mode/ring-attention", 6),
            "2024-02-21",
            "teaching notebook",
            "Ring attention differed too much from plain attention.",
        ),
    ),
    Exhibit(
        id="merge",
        title="It happens under load",
        story="Single requests are fine. When prompts are cut into chunks, some rows turn into "
        "NaN. Value = position, equal scores.",
        probe=symptoms.holes,
        option="two empty summaries are merged",
        decoys=("padding", "bits", "triangle", "mean"),
        check="unseen",
        cause="A row that sees nothing in its first block has lse −∞, and so has the state that "
        "it is merged into. −∞ − (−∞) is NaN, and every later merge keeps it.",
        repair="Subtract 0 where the larger maximum is −∞: an empty summary is neutral.",
        system=faults.UnguardedMerge(),
        source=Source(
            "vllm#27491",
            "vllm_27491",
            github("vllm-project/vllm", 27491),
            "2025-10-24",
            "serving library",
            "NaN under chunked prefill, when the first chunk holds no key for some queries.",
        ),
    ),
    Exhibit(
        id="triangle",
        title="Fine in one setting",
        story="Without a mask accuracy is perfect, with one it collapses. Equal scores, values 1, "
        "2, 4, 8, causal.",
        probe=symptoms.prefix_means,
        option="the mask counts within shards",
        decoys=("angles", "order", "mean", "skip"),
        check="positions",
        cause="The triangle compares places within shards. A row then misses a part of its past "
        "and sees keys of the future.",
        repair="Ask the rule for global positions of both sides, whoever owns them.",
        system=faults.LocalTriangle(),
        source=Source(
            "ring-flash-attention#54",
            "rfa_54",
            github("zhuzilin/ring-flash-attention", 54),
            "2024-10-06",
            "user's own loop",
            "Right without a causal mask, far off with one. How must the mask be cut?",
        ),
    ),
    Exhibit(
        id="angles",
        title="A key fades too slowly",
        story="Equal queries and equal keys, turned by position, no mask: what is the weight of "
        "key 0 for each query?",
        probe=symptoms.distance,
        option="rotary positions start at 0 on every rank",
        decoys=("triangle", "bits", "order", "heads"),
        check="positions",
        cause="Every rank counts its rows from 0. Within a shard distances are right, between "
        "shards they are too short by the offset of the shard.",
        repair="Turn by the global position that the layout says.",
        system=faults.LocalAngles(),
        source=Source(
            "Megatron-LM#5243",
            "megatron_5243",
            github("NVIDIA/Megatron-LM", 5243, "pull"),
            "2026-06-09",
            "training library",
            "Later documents of a pack could reuse the positions of the first.",
        ),
    ),
    Exhibit(
        id="order",
        title="The right numbers",
        story="Every position sees only itself, and its value is its number. All eight numbers "
        "come back.",
        probe=symptoms.identity,
        option="results are put back in the order of another layout",
        decoys=("angles", "triangle", "heads", "return"),
        check="one_hot",
        cause="The shards were contiguous, and the results are restored as if they had been "
        "zigzag. Each number is right and belongs to another token.",
        repair="Carry the layout with the data: unshard by the inverse of the permutation that "
        "sharded.",
        system=faults.ForeignOrder(),
        source=Source(
            "ms-swift#10071",
            "swift_restore",
            github("modelscope/ms-swift", 10071, "pull"),
            "2026-09-09",
            "training library",
            "Log-probabilities belonged to other tokens, without an error.",
        ),
    ),
    Exhibit(
        id="heads",
        title="The same on every rank count",
        story="A checkpoint from a different library. R = 1 and R = 2 agree in every bit, and the "
        "text is nonsense. Key heads hold the values 1 and 2.",
        probe=symptoms.four_heads,
        option="query heads read key heads in another order",
        decoys=("order", "mean", "angles", "bits"),
        check="heads",
        cause="Key heads are tiled (0, 1, 0, 1) where the model repeats each for its group "
        "(0, 0, 1, 1). A comparison with itself cannot see it.",
        repair="Query head h reads key head h // group; compare once with explicit repetition.",
        system=faults.TiledHeads(),
        source=Source(
            "onnx#7274",
            "onnx_7274",
            github("onnx/onnx", 7274, "pull"),
            "2025-09-02",
            "standard",
            "The reference tiled key heads where PyTorch repeats each for its group.",
        ),
    ),
    Exhibit(
        id="skip",
        title="Nobody crashed",
        story="Causal, four ranks. After a minute nothing moves any more.",
        probe=symptoms.progress,
        option="a rank skips a message with its work",
        decoys=("balance", "return", "triangle", "order"),
        check="counts",
        cause="Rank 0 sees nothing after step 0 and leaves the loop. The blocks that it should "
        "hand on never reach the next rank, which waits, and then the one after it.",
        repair="Skip the work by its verdict, never the message: R − 1 sends on every rank.",
        system=faults.SkippedMessage(),
        source=Source(
            "tt-metal#55091",
            "tt_metal_55091",
            github("tenstorrent/tt-metal", 55091, "pull"),
            "2026-09-01",
            "library for accelerators",
            "In a ring reduce-scatter, workers without data never sent what others waited for.",
        ),
    ),
    Exhibit(
        id="balance",
        title="Correct and late",
        story="All tests pass. Each step lasts as long as its slowest rank. Documents of 4 and 12 "
        "tokens.",
        probe=symptoms.pace,
        option="shards are balanced per document, then cut anew",
        decoys=("skip", "order", "triangle", "mean"),
        check="counts",
        cause="Zigzag indices are listed document by document, and the list is cut into equal "
        "parts. The first rank gets the short document and the early rows.",
        repair="List indices rank by rank: each rank takes its share of every document.",
        system=faults.DocumentByDocument(),
        source=Source(
            "pytorch#189902",
            "pytorch_perdoc",
            github("pytorch/pytorch", 189902, "pull"),
            "2026-07-14",
            "framework",
            "Right outputs, uneven work, and no test that could notice.",
        ),
    ),
)
