"""`python -m cpcore train`: the same language model trained by one process and by several.

Owns the comparison of weights, its demands, and the report. What a step does is `training`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cpcore.distributed import console, torchrun
from cpcore.distributed.arguments import PROTOCOLS
from cpcore.distributed.corpus import prose
from cpcore.distributed.launch import launch
from cpcore.distributed.recipe import CLOSE, LAYOUTS, SWITCHES, Recipe, check
from cpcore.distributed.training import Trained, train_alone, train_rank

DESCRIPTION = """\
Train a small decoder-only language model on the bytes of the book's own text: once by one process
that sees whole sequences, then by the ranks of a sequence under context parallelism. Losses and
all weights must agree. Four switches each do one thing wrongly; each must move the weights.

Differences are those of the weights, over the largest weight of the reference. Under torchrun the
processes that it started are the ranks, on one machine or on several.
"""
# What a switch, the loss, and the weights must at least do.
WRONG, FALL, MOVE = 1e-4, 0.2, 0.01
FULL_STEPS = 30  # fall and move are demanded from here on


class Compared(NamedTuple):
    """One run beside the reference. differences: of the weights, after each saved step."""

    ranks: int
    switch: str | None
    losses: list[float]
    differences: dict[int, float]
    loss_difference: float
    same_on_all_ranks: bool
    agrees: bool


def compare(
    reference: Trained, runs: list[Trained], switch: str | None, recipe: Recipe
) -> Compared:
    """The run of these ranks beside the reference; a switch agrees if it did its harm."""
    first, close = runs[0], CLOSE[recipe.dtype]
    differences = {
        step: float(np.abs(mine - reference.weights[step]).max() / np.abs(mine).max())
        for step, mine in first.weights.items()
    }
    gaps = np.abs(np.subtract(first.losses, reference.losses)) / np.abs(reference.losses)
    same = len({each.digest for each in runs}) == 1 and all(
        each.losses == first.losses for each in runs
    )
    last, gap = differences[recipe.steps], float(gaps.max())
    right = last <= close and gap <= close
    agrees = same and (right if switch is None else last >= WRONG)
    return Compared(len(runs), switch, first.losses, differences, gap, same, agrees)


def learned(reference: Trained, recipe: Recipe) -> dict[str, float]:
    """How far the loss fell, as a share, and how far the weights moved, as a share of their norm.

    Single sequences differ in difficulty, so the last fifth is compared with the first step.
    """
    tail = reference.losses[-max(1, recipe.steps // 5) :]
    before, after = reference.weights[0], reference.weights[recipe.steps]
    moved = np.linalg.norm(after - before) / np.linalg.norm(before)
    return {"fell": 1 - float(np.mean(tail)) / reference.losses[0], "moved": float(moved)}


def enough(found: dict[str, float], recipe: Recipe) -> bool:
    """Did the model learn so much that equal weights mean something? Asked of whole runs only."""
    return recipe.steps < FULL_STEPS or (found["fell"] >= FALL and found["moved"] >= MOVE)


def train(
    recipe: Recipe,
    ranks: list[int],
    switches: list[str],
    *,
    documents: list[bytes] | None = None,
    time_limit_s: float = 120.0,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """The report: the reference, a run for each number of ranks, and one for each switch.

    Switches are tried on the largest number of ranks; on one rank none of them does harm.
    documents: what is learned, default the text of the book.

    Raises: ValueError for a recipe that no run can follow.
    """
    check(recipe, ranks, switches)
    documents = prose() if documents is None else documents
    reference = alone(recipe, documents, time_limit_s)
    say(f"one process: loss {reference.losses[0]:.4f} to {reference.losses[-1]:.4f}")
    plans = [(size, None) for size in ranks] + [(max(ranks), switch) for switch in switches]
    runs = []
    for size, switch in plans:
        done = launch(train_rank, size, size, recipe, documents, switch, time_limit_s=time_limit_s)
        runs.append(compare(reference, done, switch, recipe))
        last = runs[-1].differences[recipe.steps]
        say(f"ranks: {size}, {switch or 'correct'}: weights differ by {last:.1e}")
    found = learned(reference, recipe)
    return {
        "recipe": recipe,
        "bytes": sum(map(len, documents)),
        "parameters": len(reference.weights[0]),
        "reference": {"losses": reference.losses, **found},
        "runs": runs,
        "agrees": enough(found, recipe) and all(run.agrees for run in runs),
    }


def alone(recipe: Recipe, documents: list[bytes], time_limit_s: float) -> Trained:
    """The reference, in a process of its own; under torchrun in every process."""
    if torchrun.present():
        return train_alone(recipe, documents)
    (done,) = launch(_reference_rank, 1, recipe, documents, time_limit_s=time_limit_s)
    return done  # type: ignore[no-any-return]


def _reference_rank(rank: int, recipe: Recipe, documents: list[bytes]) -> Trained:
    return train_alone(recipe, documents)


def text(report: dict[str, Any]) -> str:
    """The report as a table with a verdict."""
    recipe, reference = report["recipe"], report["reference"]
    head = ["run", "ranks", "last loss", "loss differs by", "weights differ by", "as it should"]
    rows = [
        [r.switch or "correct", r.ranks, r.losses[-1], r.loss_difference,
         r.differences[recipe.steps], r.agrees]
        for r in report["runs"]
    ]  # fmt: skip
    return "\n".join(
        [
            f"{report['parameters']} weights, {report['bytes']} bytes of text, {recipe.steps} "
            f"steps of {recipe.seq_len} tokens, {recipe.dtype}, {recipe.layout}, {recipe.protocol}",
            f"one process: loss {reference['losses'][0]:.4f} to {reference['losses'][-1]:.4f}, "
            f"fell by {reference['fell']:.0%}; weights moved by {reference['moved']:.1%}",
            "",
            console.table(head, rows),
            "",
            f"agrees: {'yes' if report['agrees'] else 'NO'}",
        ]
    )


def main(argv: list[str]) -> int:
    """The command."""
    made = console.parser("train", DESCRIPTION)
    standard = Recipe()
    made.add_argument("--ranks", type=int, nargs="+", metavar="R", help="numbers of ranks to try")
    made.add_argument("--steps", type=int, default=standard.steps, help="updates of the weights")
    made.add_argument("--seq-len", type=int, default=standard.seq_len, help="tokens of a step")
    made.add_argument("--dtype", choices=CLOSE, default=standard.dtype, help="of weights and all")
    made.add_argument("--layout", choices=LAYOUTS, default=standard.layout, help="who owns what")
    made.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        default=standard.protocol,
        help="how keys and values travel",
    )
    made.add_argument("--seed", type=int, default=standard.seed, help="of weights and text")
    made.add_argument("--lr", type=float, default=standard.learning_rate, help="learning rate")
    made.add_argument(
        "--switches", nargs="*", default=list(SWITCHES), metavar="NAME", help="wrong ways to try"
    )
    return console.run(argv, made, _command)


def _command(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    recipe = Recipe(
        options.steps, options.seq_len, options.seed, options.dtype, options.layout,
        options.protocol, options.lr,
    )  # fmt: skip
    ranks = options.ranks or ([torchrun.world_size()] if torchrun.present() else [1, 2, 4])
    report = train(
        recipe, ranks, options.switches, time_limit_s=options.time_limit,
        say=console.progress(options.quiet),
    )  # fmt: skip
    return report, text(report)
