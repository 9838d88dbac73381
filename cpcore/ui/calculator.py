"""Calculator: what one setting holds, sends and computes, and which term limits it.

Every number comes from the planner by way of `calculator_facts`; this module draws the bars and
puts the sentence and the tables to them. `cost_card` does the same for any numbers, beyond the
grid that the page stores.
"""

from __future__ import annotations

from cpcore.planner import HARDWARE, MODELS, Hardware, ModelShape
from cpcore.ui.calculator_facts import STATE_SHARDS, UTILIZATION, Facts, facts
from cpcore.ui.controls import Choice
from cpcore.ui.explorable import Explorable
from cpcore.ui.figure import Figure
from cpcore.ui.svg import box, details, label, svg, table

GIB, MS = 2**30, 1e3
LENGTHS = {"8192": "8K", "32768": "32K", "131072": "128K", "1048576": "1M"}
RANKS = ("2", "8", "16", "64")
MACHINES = ("A100", "H100", "B200", "TPU v5p")
PLAN_NAMES = {
    "ring": "ring, contiguous shards",
    "zigzag": "ring, zigzag shards",
    "all_gather": "all-gather, zigzag shards",
    "all_to_all": "all-to-all by heads",
    "mixed": "all-to-all in a node, ring between",
}
CONTROLS = (
    Choice("model", "Model", tuple((name, name) for name in MODELS), initial="Llama 3.1 8B"),
    Choice("machine", "Machine", tuple((name, name) for name in MACHINES), initial="H100"),
    Choice("seq_len", "Tokens", tuple(LENGTHS.items()), initial="131072"),
    Choice("ranks", "Ranks", tuple((n, n) for n in RANKS), initial="8"),
    Choice("plan", "Plan", tuple(PLAN_NAMES.items()), initial="zigzag"),
)
LONG, SHORT = 'fill="currentColor" fill-opacity=".45"', 'fill="none" stroke="currentColor"'


def draw(model: str, machine: str, seq_len: str, ranks: str, plan: str) -> tuple[str, ...]:
    """Caption, memory, time and tables of one state."""
    return _parts(facts(MODELS[model], HARDWARE[machine], int(seq_len), int(ranks), plan))


def cost_card(
    model: ModelShape,
    machine: Hardware,
    *,
    seq_len: int,
    cp_size: int,
    plan: str = "zigzag",
    utilization: float = UTILIZATION,
    state_shards: int = STATE_SHARDS,
) -> Figure:
    """The calculator for any sizes, also those between and beyond the stored ones.

    Raises: ValueError for a plan that is not among its five, or what the planner refuses.
    """
    known = facts(
        model, machine, seq_len, cp_size, plan,
        utilization=utilization, state_shards=state_shards,
    )  # fmt: skip
    return Figure("\n".join(('<div class="cp-figure">', *_parts(known), "</div>")))


def _parts(known: Facts) -> tuple[str, ...]:
    return (f"<p>{_caption(known)}</p>", _memory_panel(known), _time_panel(known), _tables(known))


def short(value: float) -> str:
    """Three significant digits, thousands apart."""
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _caption(known: Facts) -> str:
    """Does it fit, and which term is the limit, in one sentence each."""
    room = f"{short(known.rank_bytes / GIB)} of {short(known.machine.memory_bytes / GIB)} GiB"
    fit = f"A rank holds {room}: {'it fits' if known.fits else 'it does not fit'}."
    return f"{fit} {_limit(known)}"


def _limit(known: Facts) -> str:
    time = known.time
    if time is None:
        return (
            f"{known.cp_size} ranks cannot trade {known.model.q_heads} query and "
            f"{known.model.kv_heads} key heads: this plan is impossible."
        )
    total, useful = short(time.total_s * MS), f"{100 * time.efficiency:.0f} %"
    head = f"A layer takes {total} ms, {useful} of it useful compute"
    if known.step is None:
        beside = f"nothing hides the {short(time.exposed_s * MS)} ms of transfer"
    else:
        hop, work = (short(s * MS) for s in (known.step.transfer_s, known.step.compute_s))
        verb = "hides behind" if known.step.hidden else "outlasts"
        beside = f"a hop of {hop} ms {verb} {work} ms of compute"
    return f"{head}; {beside}. The limit is {time.limit}."


def _memory_panel(known: Facts) -> str:
    """One bar per item of the fullest rank, then their total beside the device's memory."""
    rows = [(item.name, item.rank_bytes / GIB) for item in known.memory]
    rows.append(("total of a rank", known.rank_bytes / GIB))
    rows.append(("memory of a device", known.machine.memory_bytes / GIB))
    alt = f"Memory of a rank in GiB: {_told(rows)}."
    return _bars("Memory of the fullest rank, GiB", rows, alt, len(rows) - 2)


def _time_panel(known: Facts) -> str:
    """Where the time of a layer goes, and one step of its ring."""
    rows = _times(known)
    alt = f"Time of one layer in ms: {_told(rows)}." if rows else "No time: the plan is impossible."
    return _bars("Forward attention of one layer, ms", rows, alt, 3)


def _times(known: Facts) -> list[tuple[str, float]]:
    time, step = known.time, known.step
    if time is None:
        return []
    rows = [
        ("useful compute", time.compute_s),
        ("waiting for the busiest rank", time.waiting_s),
        ("exposed transfer", time.exposed_s),
        ("total", time.total_s),
    ]
    if step is not None:
        rows += [("one step: compute", step.compute_s), ("one step: transfer", step.transfer_s)]
    return [(name, seconds * MS) for name, seconds in rows]


def _told(rows: list[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {short(value)}" for name, value in rows)


def _bars(title: str, rows: list[tuple[str, float]], alt: str, outlined: int) -> str:
    """Bars on one scale; from row `outlined` on they are outlines, not parts of the sum above."""
    longest = max((value for _, value in rows), default=0) or 1.0
    parts = [label(0, 14, title)]
    for i, (name, value) in enumerate(rows):
        top, length = 28 + 38 * i, round(250 * value / longest)
        parts += [
            label(0, top + 10, name),
            box(0, top + 14, length, 14, SHORT if i >= outlined else LONG),
            label(length + 6, top + 26, short(value)),
        ]
    if not rows:
        parts.append(label(0, 40, "The heads do not split this way."))
    return svg(34 + 38 * max(1, len(rows)), alt, *parts)


def _tables(known: Facts) -> str:
    memory = [
        [item.name, *(short(n / GIB) for n in item[1:3]), "yes" if item.divided_by_cp else "no"]
        for item in known.memory
    ]
    sizes = [
        ["tokens of a rank", f"{-(-known.seq_len // known.cp_size):,}"],
        ["ranks that trade heads", str(known.degree)],
        ["attention of one layer, all ranks, TFLOP", short(known.flops / 1e12)],
        [
            "sent by a rank, MB",
            "none" if known.sent_bytes is None else short(known.sent_bytes / 1e6),
        ],
        [
            "tokens of a rank that hide a hop",
            "no hop" if known.needed_chunk is None else f"{known.needed_chunk:,}",
        ],
        *([f"{name}, ms", short(value)] for name, value in _times(known)),
    ]
    heads = ["memory, GiB", "whole sequence", "fullest rank", "divided by context ranks"]
    return details(table(heads, memory), table(["one layer, forward", "value"], sizes))


calculator = Explorable(
    name="calculator",
    title="Calculator",
    summary=(
        "Training on one text: causal attention, 16-bit tensors, float32 logits, only layer "
        f"boundaries kept. Weights and optimizer state are shared by {STATE_SHARDS} devices. "
        f"Kernels sustain {100 * UTILIZATION:.0f} % of the peak, links all of theirs. Solid bars "
        "are the parts; outlined ones show totals and single steps."
    ),
    controls=CONTROLS,
    drawing=draw,
)
