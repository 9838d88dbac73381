"""Estimate drills on memory: state, layer inputs, logits, foreign blocks and cache of one rank."""

from __future__ import annotations

import random

from cpcore import planner
from cpcore.interview.drill_base import RANKS, Drill, cut, group_slips, setting, told
from cpcore.interview.judge import Slip
from cpcore.interview.units import show

WHOLE, LAYERS = "That is the whole sequence, not one rank's part.", "That is one layer only."


def state(draw: random.Random) -> Drill:
    """Weights, gradients and optimizer, shared by some ranks."""
    model, shards = draw.choice(list(planner.MODELS.values())), draw.choice((8, *RANKS[2:]))
    value = planner.training_state(model.parameters, state_shards=shards).total_bytes
    billions = f"{model.parameters / 1e9:.2f} billion"
    return Drill(
        "state per rank",
        f"{model.name}, {billions} parameters, mixed-precision Adam, the state shared by {shards} "
        "ranks. What does one rank hold before it sees a token?",
        value,
        "GiB",
        (
            "Weights 2, gradients 2, float32 copy and two moments 12: 16 bytes a parameter.",
            f"16 · {billions} = {show(16 * model.parameters, 'GiB')} in all.",
            f"Shared by {shards}: {show(value, 'GiB', 2)}. The length does not enter.",
        ),
        (
            Slip(shards, "That is the whole state; the ranks share it."),
            Slip(1 / 8, "Weights alone: gradients and optimizer are missing."),
            Slip(3 / 4, "The optimizer alone: weights and gradients are missing."),
            Slip(1 / 4, "Weights and gradients: the optimizer's 12 bytes are missing."),
        ),
        {"model": model, "shards": shards},
        factor=1.25,
    )


def inputs(draw: random.Random) -> Drill:
    """Layer boundaries of one rank under full recomputation."""
    model, seq_len, cp_size = setting(draw)
    value = planner.boundary_bytes(model, seq_len // cp_size)
    return Drill(
        "layer inputs per rank",
        f"{told(model)}: {seq_len:,} tokens cut for {cp_size} ranks, only the inputs of all layers "
        "are kept, 16-bit. How much does one rank keep?",
        value,
        "GiB",
        (
            cut(seq_len, cp_size),
            f"A token: {model.layers} layers · {model.hidden:,} · 2 bytes = "
            f"{show(2 * model.layers * model.hidden, 'KiB')}.",
            f"Together {show(value, 'GiB', 2)}.",
        ),
        (
            Slip(cp_size, WHOLE),
            Slip(1 / model.layers, LAYERS),
            Slip(2, "Twice too much: 16 bits are 2 bytes."),
            Slip(0.5, "Half of it: 16 bits are 2 bytes."),
        ),
        {"model": model, "seq_len": seq_len, "cp_size": cp_size},
    )


def logits(draw: random.Random) -> Drill:
    """Logits of one rank's tokens, float32."""
    model, seq_len, cp_size = setting(draw)
    value = planner.logits_bytes(seq_len // cp_size, model.vocabulary)
    return Drill(
        "logits per rank",
        f"{model.name}, {model.vocabulary:,} words: {seq_len:,} tokens cut for {cp_size} ranks. "
        "How large are the float32 logits of one rank, all at once?",
        value,
        "GiB",
        (
            cut(seq_len, cp_size),
            f"A token: {model.vocabulary:,} words · 4 bytes = {show(4 * model.vocabulary, 'KiB')}.",
            f"Together {show(value, 'GiB', 2)}.",
        ),
        (
            Slip(cp_size, WHOLE),
            Slip(0.5, "Half of it: float32 takes 4 bytes."),
            Slip(model.hidden / model.vocabulary, "A logit for each word, not for each channel."),
        ),
        {"model": model, "seq_len": seq_len, "cp_size": cp_size},
    )


def buffers(draw: random.Random) -> Drill:
    """A foreign block in use and one arriving."""
    model, seq_len, cp_size = setting(draw)
    value = planner.buffer_bytes("ring", model, seq_len, cp_size)
    return Drill(
        "ring buffers per rank",
        f"{told(model)}: {seq_len:,} tokens on a ring of {cp_size} ranks, 16-bit, two buffers for "
        "foreign keys and values. What do they take on one rank, in one layer?",
        value,
        "MiB",
        (
            cut(seq_len, cp_size),
            f"A block: c · 2 · {model.kv_heads} · {model.head_dim} elements of 2 bytes = "
            f"{show(value / 2, 'MiB')}.",
            f"One in use and one arriving: {show(value, 'MiB')}.",
        ),
        (
            Slip(0.5, "One block: another one arrives while it is in use."),
            Slip((cp_size - 1) / 2, "All foreign blocks: an all-gather holds them, a ring two."),
            Slip(model.layers, "All layers: the buffers are used again in each."),
            *group_slips(model, "Only Hkv heads travel."),
        ),
        {"model": model, "seq_len": seq_len, "cp_size": cp_size},
        factor=1.25,  # three foreign blocks for two would be 1.5
    )


def cache(draw: random.Random) -> Drill:
    """Keys and values of all layers, the cache of a server, spread over ranks."""
    model, seq_len, cp_size = setting(draw)
    value = planner.kv_bytes(model, seq_len // cp_size)
    return Drill(
        "cache per rank",
        f"{told(model)}: a server holds {seq_len:,} tokens, spread evenly over {cp_size} ranks, "
        "16-bit. How large is one rank's part of the KV cache?",
        value,
        "GiB",
        (
            cut(seq_len, cp_size),
            f"A token: {model.layers} layers · {model.kv_width:,} elements · 2 bytes = "
            f"{show(planner.kv_bytes(model, 1), 'KiB')}.",
            f"Together {show(value, 'GiB', 2)}.",
        ),
        (
            Slip(cp_size, WHOLE),
            Slip(1 / model.layers, LAYERS),
            Slip(0.5, "Keys and values: you counted one of them."),
            *group_slips(model, "Only Hkv heads are cached."),
        ),
        {"model": model, "seq_len": seq_len, "cp_size": cp_size},
    )
