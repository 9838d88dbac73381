"""What the facts of quiz questions are computed with: short runs of the package, by name.

A fact is a comparison, such as `exact_row([0, ln3], [0, 4]) == 3.0`. Its numbers are what the
question may state; evaluating it shows that they are right.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import permutations
from typing import Any

import numpy as np

from cpcore import (
    Dropout,
    Visibility,
    attention_chunk_stats,
    contiguous,
    dense_attention,
    dense_attention_backward,
    finalize,
    ledger,
    loss,
    merge_chunk_stats,
    museum,
    per_document,
    pitfalls,
    planner,
    positions,
    schedule,
    simulate,
    striped,
    training_pitfalls,
    zigzag,
)

GIB, MIB, S = 2**30, 2**20, 131_072
ln3 = float(np.log(3))
ONE = np.ones((1, 1))
CAUSAL = Visibility()
llama8, llama405 = planner.model_shape("Llama 3.1 8B"), planner.model_shape("Llama 3.1 405B")
llama2 = planner.model_shape("Llama 2 7B")
llama70 = planner.model_shape("Llama 3.1 70B")
h100 = planner.hardware("H100")
F, net = 0.6 * h100.peak_flops_per_s, h100.network_bytes_per_s


def close(got: Any, want: Any) -> bool:
    """Equal up to rounding."""
    got, want = np.asarray(got), np.asarray(want)
    return bool(np.abs(got - want).max() <= 1e-9 * max(1.0, float(np.abs(want).max())))


# Chapters 1 and 2


def recall(ranks: int) -> Any:
    """The last token's answer, by its own rank's keys alone; on one rank, by all keys."""
    topic = np.eye(2)[[0, 1, 1, 1, 1, 1, 1, 1]]
    said = np.array([[7.0], [1], [2], [2], [1], [2], [3], [6]])
    keys, values = np.split(topic, ranks), np.split(said, ranks)
    return dense_attention(np.array([[40.0, 0.0]]), keys[-1], values[-1])[0]


def pairs_of_ring(ranks: int) -> int:
    """Causal pairs that the ranks of a ring compute for 64 tokens."""
    return sum(event.pairs for event in schedule(contiguous(64, ranks), CAUSAL, backward=False))


def column(numbers: Any) -> Any:
    return np.array(numbers, float).reshape(-1, 1)


def exact_row(scores: Any, values: Any) -> float:
    out, _ = dense_attention(ONE, column(scores), column(values), scale=1.0)
    return round(float(out.item()), 9)


def combined_row(way: Callable[..., Any], scores: Any, values: Any, sizes: Any) -> float:
    cuts = np.cumsum(sizes)[:-1]
    keys, vals = (np.split(column(x), cuts) for x in (scores, values))
    return round(float(way(ONE, keys, vals, scale=1.0).item()), 9)


mean_row = partial(combined_row, pitfalls.equal_weight_mean)
key_count_row = partial(combined_row, pitfalls.key_count_mean)


def error_of_mean(kind: str, length: int, ranks: int = 8) -> float:
    """Relative error of the mean of softmaxes, as in chapter 2."""
    draw, size = np.random.default_rng(2).standard_normal, length * ranks
    pos, bias = np.arange(size), np.zeros(size)
    if kind == "one strong key":
        bias[size // 3] = np.log(size)
    q = np.c_[draw((size, 16)) / 4, np.ones(size)]
    k = np.c_[draw((size, 16)), bias]
    v, rule = draw((size, 16)), Visibility(causal=kind == "causal")
    exact, _ = dense_attention(q, k, v, visible=rule.block(pos, pos), scale=1.0)
    keys, values = (contiguous(size, ranks).shard(x) for x in (k, v))
    mean = pitfalls.equal_weight_mean(q, keys, values, visibility=rule, scale=1.0)
    return round(float(np.linalg.norm(mean - exact) / np.linalg.norm(exact)), 2)


# Chapter 3


def merged_max(first: float, second: float) -> Any:
    one = (attention_chunk_stats(ONE, column([x]), column([1]), scale=1.0) for x in (first, second))
    return merge_chunk_stats(*one).max.item()


def sum_only(masses: Any, values: Any) -> tuple[Any, Any]:
    """(output, lse) of two halves joined by the merge that rescales only the sum."""
    keys, vals = np.split(np.log(column(masses)), 2), np.split(column(values), 2)
    merge = pitfalls.merge_rescaling_sum_only
    return pitfalls.ring_attention_with(merge, ONE, keys, vals, scale=1.0)


def sum_only_passes(masses: Any, values: Any) -> bool:
    return close(sum_only(masses, values)[0].item(), exact_row(np.log(masses), values))


def sum_only_lse(masses: Any) -> float:
    return round(float(np.exp(sum_only(masses, masses)[1]).item()), 9)


def careless(top: float, other: float) -> Any:
    """The factor of a side with maximum `top`, without care for two that are minus infinity."""
    with np.errstate(invalid="ignore"):
        return np.exp(np.subtract(top, max(top, other)))


def same_bits_in_every_order() -> bool:
    rng = np.random.default_rng(3)
    q, k, v = map(rng.standard_normal, ((64, 16), (512, 16), (512, 8)))
    parts = [attention_chunk_stats(q, 3 * k[i::8], v[i::8]) for i in range(8)]
    bits = set()
    for order in list(permutations(range(8)))[::4000]:
        state = parts[order[0]]
        for i in order[1:]:
            state = merge_chunk_stats(state, parts[i])
        bits.add(finalize(state)[0].tobytes())
    return len(bits) == 1


def numbers_kept(form: str, value_width: int) -> int:
    part = attention_chunk_stats(ONE, ONE, np.ones((1, value_width)))
    return sum(np.size(x) for x in (part if form == "summary" else finalize(part)))


# Chapter 4


def past(size: int) -> Any:
    return np.tri(size, dtype=bool)


def seen(layout: Any, fault: Any = None) -> Any:
    """Which key reached which query, causal."""
    zeros = np.zeros((layout.seq_len, 1))
    run = simulate(zeros, zeros, np.eye(layout.seq_len), layout, CAUSAL, fault=fault)
    return run.output > 0


def caught(layout: Any) -> int:
    """How many of three slips this causal test notices."""
    slips = "mask_by_rank", "wrong_direction", "one_hop_too_few"
    return sum(not (seen(layout, slip) == past(layout.seq_len)).all() for slip in slips)


def play(programs: Any) -> tuple[int, int]:
    """(messages delivered, calls that wait forever) if a call waits for its partner."""
    todo, delivered = [[set(batch) for batch in program] for program in programs], 0
    while True:
        posted = {(r, *call) for r, batches in enumerate(todo) for b in batches[:1] for call in b}
        met = [(r, peer) for r, kind, peer in posted
               if kind == "send" and (peer, "recv", r) in posted]  # fmt: skip
        if not met:
            return delivered, len(posted)
        for sender, receiver in met:
            todo[sender][0].remove(("send", receiver))
            todo[receiver][0].remove(("recv", sender))
        todo = [[batch for batch in batches if batch] for batches in todo]
        delivered += len(met)


def stuck_calls(*, leaves: bool) -> int:
    """Calls that wait forever on a ring of four, if rank 0 does or does not leave after hop 1."""
    hops = [{("send", (r + 1) % 4), ("recv", (r - 1) % 4)} for r in range(4)]
    return play([[hop] * (1 if leaves and r == 0 else 3) for r, hop in enumerate(hops)])[1]


def messages_delivered(order: str) -> int:
    """Messages of one hop of a ring of four: all send first, receive first, or post both calls."""
    send, recv = (
        [(kind, (r + by) % 4) for r in range(4)] for kind, by in (("send", 1), ("recv", -1))
    )
    if order == "receive":
        send, recv = recv, send
    calls = zip(send, recv, strict=True)
    return play([[{s, r}] if order == "both" else [{s}, {r}] for s, r in calls])[0]


def forward_messages(protocol: str, ranks: int) -> int:
    """Messages of one rank in forward, as its ledger counts them."""
    layout = contiguous(4 * ranks, ranks)
    plan = schedule(layout, CAUSAL, protocol=protocol)
    rows = ledger(plan, layout, q_heads=1, kv_heads=1, head_dim=1)
    return sum(row.messages for row in rows if row.rank == 0 and row.phase == "forward")


# Chapter 5


def two_ranks(values: Any, fault: Any = None) -> Any:
    flat = np.zeros((4, 1))
    run = simulate(flat, flat, column(values), contiguous(4, 2), CAUSAL, fault=fault)
    return run.output.ravel().round(3).tolist()


def rotary_restart(where: str) -> bool:
    """Whether a packed run stays right if rotary positions start again there."""
    q, k, v = np.random.default_rng(5).normal(size=(3, 64, 8))
    ids, pos = np.repeat([0, 1, 2], [5, 35, 24]), np.arange(64)
    ways = {"documents": positions.document_positions(ids), "ranks": pos % 16}
    outs = [
        simulate(positions.rotary(q, at), positions.rotary(k, at), v, contiguous(64, 4),
                 Visibility(documents=ids)).output
        for at in (pos, ways[where])
    ]  # fmt: skip
    return close(outs[1], outs[0])


def gqa(kv_heads: int) -> tuple[int, int, int]:
    """Bytes, messages and tokens that rank 0 sends, with eight query heads."""
    cut = contiguous(64, 4)
    rows = ledger(schedule(cut, CAUSAL), cut, q_heads=8, kv_heads=kv_heads, head_dim=16)
    mine = [row for row in rows if row.rank == 0]
    return tuple(  # type: ignore[return-value]
        sum(getattr(row, name) for row in mine)
        for name in ("bytes_sent", "messages", "tokens_sent")
    )


def repeated_agrees() -> bool:
    """Whether repeated key heads give the same output, and dK after a sum over each group."""
    draw, cut = np.random.default_rng(7).standard_normal, contiguous(32, 4)
    q, k, v, dout = (draw((heads, 32, 4)) for heads in (8, 2, 2, 8))
    few = simulate(q, k, v, cut, CAUSAL, dout=dout)
    copies = training_pitfalls.repeat_kv_heads(k, v, 8)
    many = simulate(q, *copies, cut, CAUSAL, dout=dout)
    summed = many.dk.reshape(2, 4, 32, 4).sum(axis=1)
    return close(few.output, many.output) and close(summed, few.dk)


# Chapter 6

SIX = {
    "lost hop": ("lost_return", 3, 0), "one hop short": "return_one_hop_short",
    "stale keys": "stale_kv", "block output": "own_output", "scaled dout": "weighted_dout",
    "block lse": "own_lse",
}  # fmt: skip


@cache
def backward_case() -> Any:
    """Arrays, layout and the dense answers of chapter 6."""
    layout = contiguous(24, 4)
    q, k, v, target = np.random.default_rng(6).standard_normal((4, 24, 8))
    out, _ = dense_attention(q, k, v, visible=past(24))
    dout = (out - target) / 24
    want = dense_attention_backward(q, k, v, dout, visible=past(24))
    return layout, (q, k, v, dout), target, (out, *want)


def results_of(fault: Any) -> dict[str, bool]:
    """Which results of a faulty run equal those of one device."""
    layout, (q, k, v, dout), target, (out, *want) = backward_case()
    run = simulate(q, k, v, layout, CAUSAL, dout=dout, fault=fault)
    errors = [((x - target) ** 2).sum() / 48 for x in (run.output, out)]
    found = {"output": close(run.output, out), "loss": close(*errors)}
    pairs = zip(("dQ", "dK", "dV"), run[2:5], want, strict=True)
    return found | {name: close(mine, right) for name, mine, right in pairs}


def wrong_after(fault: Any) -> list[str]:
    return [name for name, right in results_of(fault).items() if not right]


def blind_spots(comparison: str) -> int:
    """How many of the six faults this comparison does not notice."""
    return sum(results_of(fault)[comparison] for fault in SIX.values())


def weighted_dout_ok(name: str) -> bool:
    return results_of("weighted_dout")[name]


def lost_share_is_that_of(ranks: Any) -> bool:
    """Whether the last hop to rank 0 carries exactly the shares of these ranks."""
    layout, (q, k, v, dout), _, (_, _, dk, _) = backward_case()
    run = simulate(q, k, v, layout, CAUSAL, dout=dout, fault=("lost_return", 3, 0))
    theirs = dout * np.isin(np.arange(24) // 6, ranks)[:, None]
    _, share, _ = dense_attention_backward(q, k, v, theirs, visible=past(24))
    return close((dk - run.dk)[:6], share[:6])


def delta_is_dout_dot_out() -> bool:
    _, (q, k, v, dout), _, (out, *_) = backward_case()
    scores = np.where(past(24), q @ k.T / np.sqrt(8), -np.inf)
    probs = np.exp(scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True)))
    return close((probs * (dout @ v.T)).sum(axis=-1), (dout * out).sum(axis=-1))


# Chapter 7

LossSum, mean_loss = loss.LossSum, loss.mean_loss
averaged_over_ranks = training_pitfalls.averaged_over_ranks
mean_of_rank_means = training_pitfalls.mean_of_rank_means


def attention_agrees_with_any_dout() -> bool:
    layout, (q, k, v, _), _, _ = backward_case()
    skewed = np.random.default_rng(7).standard_normal((24, 8)) * np.repeat([1, 1, 1, 9], 6)[:, None]
    run = simulate(q, k, v, layout, CAUSAL, dout=skewed)
    want = dense_attention_backward(q, k, v, skewed, visible=past(24))
    return all(close(*pair) for pair in zip(run[2:5], want, strict=True))


def late_labels(cut: Any, size: int, ranks: int) -> int:
    """How many labels are wrong if they are shifted after the split."""
    ids, layout = np.arange(size), cut(size, ranks)
    late = layout.unshard(training_pitfalls.shift_after_shard(ids, layout), axis=0)
    return int((late != loss.next_token_labels(ids)).sum())


def same_pattern(*, local: bool) -> bool:
    """Whether ranks that hash positions drop the same pairs on one, two and four ranks."""
    patterns, dropout = set(), Dropout(rate=0.3, seed=1)
    for layout in (contiguous(8, ranks) for ranks in (1, 2, 4)):
        index = [np.arange(len(own)) if local else own for own in layout.owned]
        keys = np.concatenate(index)
        keep = [dropout.keep(0, 0, own[:, None], keys) for own in index]
        patterns.add(np.concatenate(keep).tobytes())
    return len(patterns) == 1


def dropout_means() -> tuple[float, float]:
    """Mean output over four masks at rate 1/2, with the whole sum and without what is dropped."""
    mass, values, outputs = np.array([1, 3]), np.array([0, 4]), []
    for kept in ((0, 0), (0, 1), (1, 0), (1, 1)):
        left = kept * mass
        outputs.append((2 * left @ values / mass.sum(), left @ values / max(1, left.sum())))
    whole, dropped = np.mean(outputs, axis=0)
    return float(whole), float(dropped)


# Chapter 8


def work(layout: Any, rule: Any = CAUSAL) -> Any:
    """Visible pairs, step by rank."""
    table = np.zeros((layout.cp_size, layout.cp_size), np.int64)
    for event in schedule(layout, rule, backward=False):
        table[event.step, event.rank] += event.pairs
    return table


def elapsed(table: Any) -> int:
    return int(table.max(axis=1).sum())


def four_documents(tokens: int) -> tuple[Any, Any]:
    """Layout and rule of four equal documents in zigzag shards on four ranks."""
    return zigzag(4 * tokens, 4), Visibility(documents=np.repeat(np.arange(4), tokens))


def waiting_shares() -> list[float]:
    """Part of the time that each of four contiguous ranks waits, 32k tokens."""
    table = work(contiguous(2**15, 4))
    return [round(float(x), 3) for x in 1 - table.sum(axis=0) / elapsed(table)]


def restored(ranks: int) -> bool:
    """Whether the zigzag permutation undoes itself."""
    there = zigzag(2 * ranks, ranks).permutation
    return bool(np.array_equal(there[there], np.arange(2 * ranks)))


def pack_ratio(name: str, size: int, ranks: int) -> float:
    """Time over that of evenly shared work: documents of random lengths."""
    ends = [0, *np.unique(np.random.default_rng(0).integers(1, size, 15)), size]
    lengths = np.diff(ends)
    rule = Visibility(documents=np.repeat(np.arange(len(lengths)), lengths))
    cuts = {"contiguous": contiguous, "zigzag": zigzag, "striped": striped}
    table = work(cuts[name](size, ranks) if name in cuts else per_document(ends, ranks), rule)
    return round(float(elapsed(table) / (table.sum() / ranks)), 2)


def hidden_from(*, share: float) -> int:
    return planner.smallest_hidden_chunk(4e14, 5e10, group=4, visible_share=share)


# Chapter 9

smallest_hidden_chunk = planner.smallest_hidden_chunk


def ring_gb(seq_len: int, ranks: int, kv_heads: int) -> float:
    """GB that a rank sends in forward, 32 query heads of width 128."""
    lengths = [seq_len // ranks] * ranks
    row, *_ = planner.attention_traffic(lengths, 0, "ring", kv_heads=kv_heads, head_dim=128)
    return row.bytes_sent / 1e9


def trade_gb(seq_len: int, ranks: int, kv_heads: int) -> float:
    rows = planner.all_to_all_traffic(
        seq_len // ranks, ranks, q_heads=32, kv_heads=kv_heads, head_dim=128
    )
    return sum(row.bytes_sent for row in rows[:2]) / 1e9


def exposed_hops(size: int, ranks: int) -> int:
    """Hops of a zigzag ring over the network that outlast the compute beside them."""
    steps = planner.ring_steps(llama8, size, ranks, flops_per_s=F, bytes_per_s=net)
    return sum(step.exposed_s > 0 for step in steps)


def plan_ms(plan: str, ranks: int) -> float:
    degree = 8 if plan == "mixed" else None
    time = planner.attention_time(plan, llama8, h100, S, ranks, degree=degree, utilization=0.6)
    return time.total_s * 1e3


def plan_times(layout: str, size: int, ranks: int) -> tuple[float, float, float]:
    """Total, waiting and exposed milliseconds of a ring: Llama 2 7B."""
    t = planner.attention_time("ring", llama2, h100, size, ranks, layout=layout, utilization=0.6)
    total, waiting, exposed = (round(x * 1e3, 1) for x in (t.total_s, t.waiting_s, t.exposed_s))
    return total, waiting, exposed


def decode_pairs_bytes(model: Any, ranks: int) -> int:
    """One (output, lse) per query head in float32 to each of the others."""
    return 4 * (ranks - 1) * model.q_heads * (model.head_dim + 1)


def decode_send_s(model: Any, ranks: int) -> float:
    """Seconds in which those pairs of all layers leave a rank, inside a node."""
    return model.layers * decode_pairs_bytes(model, ranks) / h100.node_bytes_per_s


# Chapters 11 and 13

CHECKLIST, EXHIBITS, failed = museum.CHECKLIST, museum.EXHIBITS, museum.failed


def suspects(**seen: bool) -> set[str]:
    """Exhibits that fail the checks given as True and pass those given as False."""
    return {
        name
        for name in museum.EXHIBITS
        if all((c in failed(name)) == bad for c, bad in seen.items())
    }


def fails_with(fault: str) -> list[str]:
    """Checks that a system fails whose only fault is one of `simulate`."""
    system = type("Faulty", (museum.System,), {"fault": fault})()
    return [name for name, seen in museum.examine(system).items() if not seen.passed]


def blind(fault: Any) -> list[str]:
    """Results that still equal those of one device."""
    return [name for name, right in results_of(fault).items() if right]
