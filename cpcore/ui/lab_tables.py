"""Every table of the laboratory: the event, the end, the ledger and the inputs."""

from __future__ import annotations

import numpy as np

from cpcore.ledger import LedgerRow, ledger
from cpcore.ui.lab_events import Row, Snapshot
from cpcore.ui.lab_facts import INPUTS, NAMES, POSITIONS, ROUNDING, WIDTH, Array, Facts
from cpcore.ui.lab_panels import small
from cpcore.ui.svg import details, num, table

EVENT_HEADS = (
    "object",
    "visible keys or target",
    "running max or dK",
    "exp-sum",
    "prefix output or dV",
)
PARTS = ("qkv", "remote_block", "online_state")
APART = ("workspace", "output", "lse", "gradients", "buffers")


def pair(numbers: Array) -> str:
    """Both columns of a row."""
    return f"({num(float(numbers[0]))}, {num(float(numbers[1]))})"


def event_table(snapshot: Snapshot) -> str:
    """The event under the cursor: a row for each query or key that it touches."""
    return table(EVENT_HEADS, [_event_row(snapshot, row) for row in snapshot.rows])


def _event_row(snapshot: Snapshot, row: Row) -> list[str]:
    event, others = snapshot.event, ", ".join(map(str, row.others)) or "none"
    if isinstance(row.left, float):
        total = "none" if row.total is None else num(row.total)
        return [f"query {row.position}", f"keys {others}", num(row.left), total, pair(row.right)]
    if event.phase == "replay":
        name, target = f"key {row.position}, share of rank {event.rank}", f"queries {others}"
    else:
        name = f"gradient of key {row.position}, from rank {event.rank}"
        target = f"to rank {event.send_to}" + (", lost: 0 arrives" if snapshot.lost else "")
    return [name, target, pair(row.left), "none", pair(row.right)]


def final_table(known: Facts) -> str:
    """Results of every position after all events, each above its reference."""
    rows = []
    for p in range(POSITIONS):
        cells = []
        for mine, right in zip(known.results, known.reference, strict=True):
            wrong = float(np.abs(mine[p] - right[p]).max()) >= ROUNDING
            cells.append(pair(mine[p]) + " \N{BALLOT X}" * wrong)
        rows.append([f"position {p}", *cells])
        rows.append([f"{p}, reference", *(pair(right[p]) for right in known.reference)])
    return table(["after all events", *NAMES], rows)


def headline(known: Facts) -> str:
    """The largest differences and both losses."""
    heads = ["after all events", *NAMES, "loss", "reference loss"]
    losses = (num(known.loss), num(known.reference_loss))
    return _flat(table(heads, [["largest difference", *map(small, known.differences), *losses]]))


def ledger_tables(known: Facts) -> str:
    """What moves, what stays, and what the protocol alone does not decide."""
    rows = ledger(known.run.events, known.layout, q_heads=1, kv_heads=1, head_dim=WIDTH)
    moving, resident = [r for r in rows if r.phase != "resident"], rows[-known.layout.cp_size :]
    names = {"forward": "forward KV", "replay": "replayed KV", "return": "returned gradients"}
    traffic = table(
        ["float64, 8 bytes", "elements sent", "elements received", "bytes sent",
         "bytes received", "messages sent"],
        [[f"rank {r.rank}, {names[r.phase]}", *map(str, (
            r.elements_sent, r.elements_received, r.bytes_sent, r.bytes_received, r.messages,
        ))] for r in moving],
    )  # fmt: skip
    heads = ["resident", "resident QKV", "remote block", "online state"]
    apart = ["counted apart", "workspace", "output", "lse", "gradients", "buffers"]
    return _flat(
        traffic
        + table(heads, [_held(row, PARTS) for row in resident])
        + table(apart, [_held(row, APART) for row in resident])
    )


def _held(row: LedgerRow, parts: tuple[str, ...]) -> list[str]:
    """Elements and bytes of some kinds of memory."""
    sizes = [getattr(row, part) for part in parts]
    return [f"rank {row.rank}", *(f"{n} ({8 * n} B)" for n in sizes)]


def inputs_table() -> str:
    """Every input, and the scale."""
    rows = [[f"position {p}", *(pair(x[p]) for x in INPUTS.values())] for p in range(POSITIONS)]
    return _flat(table(["inputs", *INPUTS], rows))


def opened(*tables: str) -> str:
    """Tables that are part of the picture: not collapsed, wide ones scroll in their own box."""
    return (
        '<div class="cp-note"><div class="cp-table" role="group" aria-label="Event and results" '
        f'tabindex="0">\n{"".join(tables)}</div></div>'
    )


def collapsed(known: Facts) -> str:
    """Headline, ledger and inputs."""
    return details(headline(known), "\n", ledger_tables(known), "\n", inputs_table(), "\n")


def _flat(markup: str) -> str:
    """One line: what stays the same for all events of a state is stored as one."""
    return markup.replace("\n", "")
