"""`python -m cpcore lab`: the two-owner laboratory on real processes.

Owns the verdicts: each rank's results beside autograd and beside the simulation, what it sent
beside the ledger, its events beside the schedule, and the report of all of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpcore.checks import expected
from cpcore.distributed import console, torchrun
from cpcore.distributed.lab_cells import (
    BLOCKS,
    INPUTS,
    PATHS,
    RESULTS,
    RULES,
    SPLITS,
    WIDTH,
    Cell,
    cells,
    reference,
)
from cpcore.distributed.lab_ranks import RankReport, run_cells
from cpcore.distributed.launch import launch
from cpcore.ledger import ledger
from cpcore.ring import simulate
from cpcore.schedule import Event

Array = NDArray[Any]
ROUNDING = 1e-13  # the numbers here are near 1: some hundred units in the last place
DESCRIPTION = """\
Five positions, split 2+3, 1+4, 1+0+4 and 2+1+1+1 over real processes that talk through Gloo:
causal, full, and with a row that sees nothing; whole shards, blocks of two and of one; the correct
path, a lost gradient, and a wrong divisor. Two codes do the work: `attention`, the autograd
function that a model calls, and `player`, which takes every event of the schedule literally.

Each rank's output, gradients and loss stand beside torch autograd and beside the simulation, what
it sent beside the ledger, its events beside the schedule. Exit code 1 if anything disagrees, also
if a wrong path does no harm, or harm that it should not do.

Under torchrun the processes that it started are the ranks, on one machine or on several:
  torchrun --nproc-per-node 2 -m cpcore lab
"""


class Verdict(NamedTuple):
    """One cell: its ranks, the largest differences, and what was found wrong.

    wrong: names of the results that differ from the reference. agrees: they are exactly those that
    the path gets wrong, and the ranks are what simulation, schedule and ledger say of this path.
    """

    cell: Cell
    ranks: list[RankReport]
    to_reference: dict[str, float]
    to_simulation: dict[str, float]
    loss: float
    events_equal: bool
    bytes_equal: bool
    wrong: list[str]
    agrees: bool


def judge(cell: Cell, ranks: list[RankReport]) -> Verdict:
    """The verdict on one cell."""
    right, played = reference(cell.visibility), simulated(cell)
    loss = sum(each.loss for each in ranks)
    to_reference = _gaps(cell, ranks, right) | {"loss": abs(loss - float(right["loss"]))}
    to_simulation = _gaps(cell, ranks, played)
    wrong = [name for name, gap in to_reference.items() if not gap < ROUNDING]
    events_equal = all(
        each.events is None or each.events == _mine(cell, each.rank) for each in ranks
    )
    bytes_equal = all(each.sent == expected_bytes(cell, each.rank) for each in ranks)
    agrees = set(wrong) == PATHS[cell.path] and max(to_simulation.values()) < ROUNDING
    agrees = agrees and events_equal and bytes_equal
    return Verdict(
        cell, ranks, to_reference, to_simulation, loss, events_equal, bytes_equal, wrong, agrees
    )


def _mine(cell: Cell, rank: int) -> list[Event]:
    return [event for event in cell.events if event.rank == rank]


def _gaps(cell: Cell, ranks: list[RankReport], wanted: dict[str, Array]) -> dict[str, float]:
    """The largest difference of each result over all ranks; infinities must be equal."""
    gaps: dict[str, float] = {}
    for name in RESULTS:
        for each in ranks:
            got = getattr(each, name)
            if got is not None:
                want = wanted[name][cell.layout.owned[each.rank]]
                with np.errstate(invalid="ignore"):
                    gap = np.where(got == want, 0.0, np.abs(got - want))
                # NaN counts as the largest difference that there is.
                worst = float(np.nan_to_num(gap, nan=np.inf).max(initial=0.0))
                gaps[name] = max(gaps.get(name, 0.0), worst)
    return gaps


def simulated(cell: Cell) -> dict[str, Array]:
    """The same path in one process, by `cpcore.simulate`."""
    dout = cell.layout.unshard([cell.upstream(mine) for mine in cell.layout.owned])
    fault = None if cell.lost is None else ("lost_return", *cell.lost)
    run = simulate(
        INPUTS["q"], INPUTS["k"], INPUTS["v"], cell.layout, cell.rule, dout=dout,
        protocol=cell.protocol, max_block=BLOCKS[cell.block], fault=fault,
    )  # fmt: skip
    return {name: np.asarray(getattr(run, name)) for name in RESULTS}


def expected_bytes(cell: Cell, rank: int) -> dict[str, dict[str, int]]:
    """What the ledger says that the rank sends in each phase in which it sends anything."""
    rows = ledger(cell.events, cell.layout, q_heads=1, kv_heads=1, head_dim=WIDTH)
    return {
        row.phase: {
            "elements": row.elements_sent, "bytes": row.bytes_sent, "messages": row.messages
        }
        for row in rows
        if row.rank == rank and row.messages
    }  # fmt: skip


def laboratory(
    splits: list[str] | None = None,
    *,
    time_limit_s: float = 120.0,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """The report of every cell: one start of ranks for each number of ranks.

    Raises: ValueError for a split that the laboratory does not have.
    """
    for split in splits or []:
        if split not in SPLITS:
            raise expected("split", f"one of {', '.join(SPLITS)}", repr(split))
    sizes = sorted({len(SPLITS[split]) for split in splits or SPLITS})
    if torchrun.present():
        sizes = [torchrun.world_size()]
    verdicts = []
    for size in sizes:
        mine = [cell for cell in cells(size) if splits is None or cell.split in splits]
        if not mine:
            raise expected("ranks", "2, 3 or 4 for the splits of the laboratory", size)
        reports = launch(run_cells, size, mine, time_limit_s=time_limit_s)
        verdicts += [judge(cell, list(ranks)) for cell, *ranks in zip(mine, *reports, strict=True)]
        good = sum(v.agrees for v in verdicts[-len(mine) :])
        say(f"{size} ranks: {good} of {len(mine)} cells agree")
    return {
        "inputs": INPUTS,
        "event_fields": Event._fields,
        "references": {name: reference(name) for name in RULES},
        "cells": verdicts,
        "agrees": all(verdict.agrees for verdict in verdicts),
    }


def text(report: dict[str, Any]) -> str:
    """A line for each split, path and code, the worst of its cells; then what disagrees."""
    groups: dict[tuple[str, str, str], list[Verdict]] = {}
    for verdict in report["cells"]:
        cell = verdict.cell
        groups.setdefault((cell.split, cell.path, cell.code), []).append(verdict)
    head = ["split", "path", "code", "cells", "output", "loss", "dq", "dk", "dv",
            "simulation", "events", "bytes", "as it should"]  # fmt: skip
    rows = []
    for names, found in groups.items():
        gaps = [max(v.to_reference[n] for v in found) for n in ("output", "loss", "dq", "dk", "dv")]
        simulation = max(max(v.to_simulation.values()) for v in found)
        flags = [all(getattr(v, n) for v in found) for n in ("events_equal", "bytes_equal")]
        rows.append([*names, len(found), *gaps, simulation, *flags, all(v.agrees for v in found)])
    lines = ["Largest differences from autograd, and from the simulation of the same path.", ""]
    lines.append(console.table(head, rows))
    for verdict in report["cells"]:
        if not verdict.agrees:
            lines.append(f"disagrees: {', '.join(verdict.cell)}: wrong {verdict.wrong}")
    return "\n".join([*lines, "", f"agrees: {'yes' if report['agrees'] else 'NO'}"])


def main(argv: list[str]) -> int:
    """The command."""
    made = console.parser("lab", DESCRIPTION)
    made.add_argument("--split", action="append", choices=SPLITS, help="only this one; repeatable")
    return console.run(argv, made, _command)


def _command(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    report = laboratory(
        options.split, time_limit_s=options.time_limit, say=console.progress(options.quiet)
    )
    return report, text(report)
