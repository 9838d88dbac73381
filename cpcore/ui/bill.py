"""Bill explorer: what training on one sample takes, cut or not, and whether the cut is worth it.

Every number comes from the planner; this module draws them and says what follows.
"""

from __future__ import annotations

from collections.abc import Sequence

from cpcore import planner
from cpcore.planner import HARDWARE, MODELS, Condition, MemoryItem
from cpcore.ui.controls import Choice
from cpcore.ui.explorable import Explorable
from cpcore.ui.memory_figures import GIB, bill_panel, bill_table
from cpcore.ui.svg import box, details, label, svg, table

MACHINE = HARDWARE["H100"]
LENGTHS = {"8192": "8K", "32768": "32K", "131072": "128K", "262144": "256K", "1048576": "1M"}
CONTROLS = (
    Choice("model", "Model", tuple((name, name) for name in MODELS), initial="Llama 3.1 8B"),
    Choice("seq_len", "Tokens of the sample", tuple(LENGTHS.items()), initial="131072"),
    Choice("shards", "Devices that share the state", tuple((n, n) for n in ("1", "8", "64")), "8"),
    Choice("ranks", "Context ranks", tuple((n, n) for n in ("2", "4", "8", "16", "64")), "8"),
    Choice("tensor", "Tensor ranks", tuple((n, n) for n in ("1", "8"))),
)
HAVE, NEED = 'fill="currentColor" fill-opacity=".6"', 'fill="none" stroke="currentColor"'
LONGEST, PITCH = 220.0, 64  # a bar; from one condition to the next


def draw(model: str, seq_len: str, shards: str, ranks: str, tensor: str) -> tuple[str, ...]:
    """Caption, the bill, the four conditions, and both as tables."""
    shape, tokens, cut, shared = MODELS[model], int(seq_len), int(ranks), int(shards)
    bills = {
        name: planner.memory_items(shape, tokens, size, state_shards=shared)
        for name, size in (("no cut", 1), (f"cut over {cut}", cut))
    }
    rows = planner.conditions(
        shape, MACHINE, tokens, cut, state_shards=shared, tensor_size=int(tensor)
    )
    room = MACHINE.memory_bytes
    facts = details(bill_table(bills, room), _table(rows))
    picture = bill_panel(bills, room, "Memory of the fullest rank, without and with the cut.")
    return f"<p>{_caption(bills[f'cut over {cut}'], rows)}</p>", picture, _panel(rows), facts


def _caption(bill: Sequence[MemoryItem], rows: Sequence[Condition]) -> str:
    """What a rank holds after the cut, and the decision."""
    total = sum(item.rank_bytes for item in bill)
    fits = total <= MACHINE.memory_bytes
    held = f"{short(total / GIB)} of {short(MACHINE.memory_bytes / GIB)} GiB"
    word = "it fits" if fits else "it does not fit"
    head = f"Cut, a rank holds {held}: {word}."
    missing = [str(number) for number, row in enumerate(rows, 1) if not row.holds]
    if missing:
        noun, verb = ("condition", "does") if len(missing) == 1 else ("conditions", "do")
        return f"{head} Refuse: {noun} {', '.join(missing)} {verb} not hold."
    return f"{head} All four conditions hold: {'use it' if fits else 'cut, and do more'}."


def short(value: float) -> str:
    """Three significant digits, thousands apart."""
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _shown(row: Condition) -> tuple[str, str]:
    """Both numbers of a condition, with their unit."""
    if row.unit == "bytes":
        return f"{short(row.have / GIB)} GiB", f"{short(row.need / GIB)} GiB"
    return f"{row.have:,.0f} tokens", f"{row.need:,.0f} tokens"


def _panel(rows: Sequence[Condition]) -> str:
    """Two bars a condition: what there is, and, as an outline, what it must reach."""
    parts = []
    for i, row in enumerate(rows):
        top, longest = 14 + PITCH * i, max(row.have, row.need)
        mark = "\N{CHECK MARK}" if row.holds else "\N{BALLOT X}"
        parts.append(label(0, top, f"{mark} {i + 1} {row.claim}"))
        bars = ((row.have, HAVE), (row.need, NEED))
        for j, ((value, look), text) in enumerate(zip(bars, _shown(row), strict=True)):
            y, length = top + 6 + 18 * j, LONGEST * value / longest
            parts += [box(0, y, length, 13, look), label(length + 6, y + 11, text)]
    told = ", ".join(f"{row.claim}: {'yes' if row.holds else 'no'}" for row in rows)
    return svg(PITCH * len(rows) + 2, f"Four conditions. {told}.", *parts)


def _table(rows: Sequence[Condition]) -> str:
    body = [
        [f"{number} {row.claim}", *_shown(row), "yes" if row.holds else "no"]
        for number, row in enumerate(rows, 1)
    ]
    return table(["condition", "have", "need", "holds"], body)


bill_explorer = Explorable(
    name="bill-explorer",
    title="Memory bill",
    summary=(
        "Training on one sample on H100s: 16-bit tensors, float32 logits and optimizer, only "
        "layer inputs kept. First the bill, without and with a cut of the sample. Then four "
        "conditions: the filled bar must reach at least as far as the outlined one. Tensor ranks "
        "count for the third and, since they fill a node first, for the fourth."
    ),
    controls=CONTROLS,
    drawing=draw,
)
