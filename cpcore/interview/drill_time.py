"""Estimate drills on transfer: bytes of a hop, whether it hides, the smallest chunk, protocols."""

from __future__ import annotations

import random

from cpcore import planner
from cpcore.interview.drill_base import SUSTAINED, Drill, cut, group_slips, setting, told
from cpcore.interview.judge import Slip
from cpcore.interview.units import show


def hop(draw: random.Random) -> Drill:
    """Bytes of one forward step of a ring."""
    model, seq_len, cp_size = setting(draw)
    c = seq_len // cp_size
    first, *_ = planner.attention_traffic(
        [c] * cp_size, 0, "ring", kv_heads=model.kv_heads, head_dim=model.head_dim
    )
    value = first.bytes_sent // (cp_size - 1)
    return Drill(
        "bytes per step",
        f"{told(model)}: {seq_len:,} tokens on a ring of {cp_size} ranks, 16-bit elements. How "
        "much does one rank send at one step of one layer's forward pass?",
        value,
        "MiB",
        (
            cut(seq_len, cp_size),
            f"Keys and values of a token: 2 · {model.kv_heads} · {model.head_dim} = "
            f"{model.kv_width:,} elements, 2 bytes each.",
            f"{c:,} · {model.kv_width:,} · 2 bytes = {show(value, 'MiB', 1)}.",
        ),
        (
            Slip(0.5, "Keys and values travel: you counted one of them, or one byte an element."),
            Slip(2, "Twice too much: are the elements 4 bytes, or K and V counted twice?"),
            Slip(cp_size - 1, "That is a whole lap of R − 1 hops; asked is one step."),
            Slip(cp_size, "That is the whole sequence; a hop carries one rank's shard."),
            Slip(model.layers, "That is all layers; asked is one."),
            *group_slips(model, "Only Hkv heads travel; you sent one for each query head."),
        ),
        {"model": model, "seq_len": seq_len, "cp_size": cp_size},
    )


def chunk(draw: random.Random) -> Drill:
    """The smallest shard whose compute hides a hop."""
    model = draw.choice(list(planner.MODELS.values()))
    machine = draw.choice(list(planner.HARDWARE.values()))
    across, causal = draw.random() < 0.5, draw.random() < 0.5
    link = machine.network_bytes_per_s if across else machine.node_bytes_per_s
    speed, share = SUSTAINED * machine.peak_flops_per_s, 0.5 if causal else 1.0
    value = planner.smallest_hidden_chunk(speed, link, group=model.group, visible_share=share)
    rate = machine.peak_flops_per_s
    return Drill(
        "smallest chunk",
        f"{model.name}, group {model.group}, on {machine.name}: {show(rate, 'TFLOP/s')} at the "
        f"peak, {SUSTAINED:.0%} of it sustained. The slowest hop carries "
        f"{link / 1e9:g} GB/s. How many tokens must a rank own, so that a forward hop hides "
        f"behind {'a balanced causal' if causal else 'a full'} block? 16-bit elements.",
        value,
        "tokens",
        (
            f"Sustained: F = {show(speed, 'TFLOP/s', 1)}.",
            "Compute 4·u·c²·d/F against transfer 4·c·d/(g·Bw): c ≥ F/(u·g·Bw).",
            f"u = {'1/2, balanced causal' if causal else '1, a full block'}, g = {model.group}.",
            f"{speed:.3g} / ({share:g} · {model.group} · {link:.3g}) = {value:,} tokens.",
        ),
        (
            Slip(1 / SUSTAINED, "That is the threshold at the peak, which no kernel sustains."),
            Slip(0.5, "Half of it: is the block half visible, and is a hop 2 + 2 bytes?"),
            Slip(2, "Twice it: a full block does all of its work beside the hop."),
            *group_slips(model, "The group g divides the bytes that travel, so the chunk too."),
        ),
        {"group": model.group, "speed": speed, "link": link, "share": share},
    )


def overlap(draw: random.Random) -> Drill:
    """Compute of a balanced causal step over the transfer beside it."""
    while True:
        model, seq_len, cp_size = setting(draw)
        machine = draw.choice([m for m in planner.HARDWARE.values() if m.node_size == 8])
        speed, link = SUSTAINED * machine.peak_flops_per_s, machine.link_bytes_per_s(cp_size)
        steps = planner.ring_steps(model, seq_len, cp_size, flops_per_s=speed, bytes_per_s=link)
        compute, moved = steps[1].compute_s, steps[0].transfer_s
        value, where = compute / moved, "inside a node" if cp_size <= 8 else "across nodes"
        if 0.1 < value < 0.62 or 1.6 < value < 12:  # no accepted answer is on the other side of 1
            break
    return Drill(
        "hidden or not",
        f"{told(model)}: {seq_len:,} tokens, causal, zigzag, on {cp_size} {machine.name}s "
        f"({show(speed, 'TFLOP/s')} sustained, {link / 1e9:g} GB/s a hop, {where}). By what "
        "factor does the compute of a later step outlast a hop? Above 1 x it is hidden.",
        value,
        "x",
        (
            cut(seq_len, cp_size),
            f"Half of the block is visible: 2·c²·d flops, d = {model.q_width:,}: "
            f"{show(compute, 'ms', 3)}.",
            f"A hop: 4·c·d/g bytes, g = {model.group}: {show(moved, 'ms', 3)}.",
            f"Their ratio is c·g·Bw/(2F) = {value:.2f}: {'hidden' if value >= 1 else 'exposed'}.",
        ),
        (
            Slip(2, "A balanced causal step computes half of the block."),
            Slip(1 / value**2, "The other way around: compute divided by transfer."),
            *group_slips(model, "The hop's bytes were divided by the group twice."),
            *((Slip(1 / model.group, "The hop carries Hkv heads."),) if model.group > 1 else ()),
        ),
        {"model": model, "seq_len": seq_len, "cp_size": cp_size, "speed": speed, "link": link},
    )


def trade(draw: random.Random) -> Drill:
    """Bytes that one rank sends for a whole forward pass under all-to-all by heads."""
    model, seq_len, cp_size = setting(draw)
    cp_size = min(cp_size, 8)
    c = seq_len // cp_size
    inward, outward, *_ = planner.all_to_all_traffic(
        c, cp_size, q_heads=model.q_heads, kv_heads=model.kv_heads, head_dim=model.head_dim
    )
    value = inward.bytes_sent + outward.bytes_sent
    ring, *_ = planner.attention_traffic(
        [c] * cp_size, 0, "ring", kv_heads=model.kv_heads, head_dim=model.head_dim
    )
    widths = 2 * model.q_width + model.kv_width
    return Drill(
        "bytes of an all-to-all",
        f"{told(model)}: {seq_len:,} tokens on {cp_size} ranks, all-to-all by heads, 16-bit "
        "elements. How much does one rank send in one layer's forward pass, both ways together?",
        value,
        "GB",
        (
            cut(seq_len, cp_size),
            "In go queries, keys and values, back comes the output: "
            f"2 · {model.q_width:,} + {model.kv_width:,} = {widths:,} elements a token.",
            f"A share of {cp_size - 1}/{cp_size} leaves the rank.",
            f"{c:,} · {widths:,} · {cp_size - 1}/{cp_size} · 2 bytes = {show(value, 'GB', 3)}.",
        ),
        (
            Slip(ring.bytes_sent / value, "That is what a ring sends."),
            Slip(cp_size / (cp_size - 1), "A share of 1/R stays at home."),
            Slip(cp_size, "That is all ranks together, or the whole sequence."),
            Slip(model.layers, "That is all layers; asked is one."),
            Slip(0.5, "Half of it: one byte an element, or one of the two exchanges?"),
        ),
        {"model": model, "seq_len": seq_len, "cp_size": cp_size},
        factor=1.1,  # a ring may send 8/9 of it
    )
