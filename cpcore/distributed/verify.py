"""`python -m cpcore verify`: random attention problems on real processes, against autograd.

Owns the run, the comparison of every rank's every element with its bound, and the report.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cpcore.checks import expected, whole_number
from cpcore.distributed import console, torchrun, where
from cpcore.distributed.arguments import PROTOCOLS
from cpcore.distributed.attention import context_parallel_attention
from cpcore.distributed.bounds import RESULTS, allowed, solve, worst
from cpcore.distributed.cases import DTYPES, LAYOUTS, RULES, Case, Drawn, draw
from cpcore.distributed.group import GroupTransport
from cpcore.distributed.launch import launch
from cpcore.schedule import PROTOCOLS as SCHEDULED
from cpcore.schedule import schedule

DESCRIPTION = """\
Random attention problems on real processes: output and all gradients of every rank, element by
element, against torch autograd over the whole sequence in float64. Receive buffers hold NaN until
their message arrives, padding slots hold NaN, and every message sent must be one of the schedule.

The last numbers of a line are the largest error as a share of what rounding may cause: right is
below 1.
Options that are left out take every value in turn. A combination that the attention refuses is
counted, not hidden. Under torchrun the processes that it started are the ranks:
  torchrun --nproc-per-node 2 -m cpcore verify
On several machines, on each of them:
  torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST:29400 \\
    -m cpcore verify
"""
Message = tuple[str, int, int, int]  # phase, step, peer, elements


class RankAnswer(NamedTuple):
    """What one rank got, in its own order, or why it was refused."""

    results: dict[str, Tensor]
    sent: list[Message]
    refused: str = ""


class Checked(NamedTuple):
    """One case: the largest error of each result as a share of what is allowed."""

    case: Case
    refused: str
    shares: dict[str, float]
    messages_equal: bool
    agrees: bool


def run_cases(rank: int, cases: list[Case]) -> list[RankAnswer]:
    """The rank's part of every case."""
    answers = []
    for number, case in enumerate(cases):
        where.at(f"case {number}, seed {case.seed}")
        answers.append(_run(rank, case))
    return answers


def _run(rank: int, case: Case) -> RankAnswer:
    drawn = draw(case)
    mine = torch.from_numpy(drawn.layout.owned[rank].copy())
    q, k, v, dout = (x[:, :, mine] for x in drawn.arrays)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    carrier = GroupTransport(poison=True, recording=True)
    scale = drawn.problem.scale
    try:
        output = context_parallel_attention(
            *leaves, layout=drawn.layout, visibility=drawn.rule, group=carrier,
            protocol=case.protocol, scale=scale, dropout=drawn.dropout,
        )  # fmt: skip
    except ValueError as error:  # on every rank, and before any message
        return RankAnswer({}, [], str(error))
    output.backward(dout)  # type: ignore[no-untyped-call]
    gradients = [torch.zeros_like(x) if x.grad is None else x.grad for x in leaves]
    results = dict(zip(RESULTS, (output.detach(), *gradients), strict=True))
    sent = [(m.phase, m.step, m.peer, m.elements) for m in carrier.records if m.direction == "sent"]
    return RankAnswer(results, sent)


def check(case: Case, answers: list[RankAnswer]) -> Checked:
    """All ranks of one case beside the reference and the schedule."""
    refusals = {answer.refused for answer in answers}
    if refusals != {""}:
        agrees = "" not in refusals  # all or none
        return Checked(case, min(refusals - {""}), {}, True, agrees)
    drawn = draw(case)
    right = solve(drawn.problem)
    bounds = allowed(drawn.problem, right)
    shares = dict.fromkeys(RESULTS, 0.0)
    for rank, answer in enumerate(answers):
        mine = torch.from_numpy(drawn.layout.owned[rank].copy())
        for name, got in answer.results.items():
            share = worst(got, right[name][:, :, mine], bounds[name][:, :, mine])
            shares[name] = max(shares[name], share)
    equal = case.protocol not in SCHEDULED or all(
        sorted(answer.sent) == planned(case, drawn, rank) for rank, answer in enumerate(answers)
    )
    return Checked(case, "", shares, equal, equal and max(shares.values()) < 1)


def planned(case: Case, drawn: Drawn, rank: int) -> list[Message]:
    """Every message that the schedule has this rank send, sorted."""
    batch, heads, _, width = drawn.problem.k.shape
    token = batch * heads * (width + drawn.problem.v.shape[-1])
    events = schedule(drawn.layout, drawn.rule, protocol=case.protocol)
    return sorted(
        (e.phase, e.step, e.send_to, token * e.sent_tokens)
        for e in events
        if e.rank == rank and e.send_to is not None
    )


def verify(
    cases: list[Case],
    *,
    time_limit_s: float = 120.0,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """The report on these cases, all for one number of ranks."""
    size = cases[0].cp_size
    answers = launch(run_cases, size, cases, time_limit_s=time_limit_s)
    say(f"{size} ranks have run {len(cases)} cases")
    checked = [check(case, list(ranks)) for case, *ranks in zip(cases, *answers, strict=True)]
    refused = sum(bool(each.refused) for each in checked)
    agrees = all(each.agrees for each in checked) and refused < len(checked)
    return {"ranks": size, "refused": refused, "cases": checked, "agrees": agrees}


def choose(options: argparse.Namespace) -> list[Case]:
    """The cases that the options ask for: `--cases` of every combination."""
    size = torchrun.world_size() if torchrun.present() else options.ranks
    whole_number("ranks", size, 1)
    whole_number("cases", options.cases, 1)
    if options.seq_len < 0:
        raise expected("seq-len", "an integer of at least 0", options.seq_len)
    lists = (options.protocol, options.layout, options.visibility, options.dtype)
    every = (PROTOCOLS, tuple(LAYOUTS), tuple(RULES), DTYPES)
    names = [[one] if one else [*many] for one, many in zip(lists, every, strict=True)]
    combinations = list(product(*names, range(options.cases)))
    first = whole_number("seed", options.seed, 0)
    return [
        Case(first + number, size, layout, rule, protocol, dtype, options.seq_len)
        for number, (protocol, layout, rule, dtype, _) in enumerate(combinations)
    ]


def text(report: dict[str, Any]) -> str:
    """A line for every combination, its refusals counted, and every failure with its seed."""
    groups: dict[tuple[str, str, str], list[Checked]] = {}
    for each in report["cases"]:
        case = each.case
        names = (case.protocol, case.layout, case.visibility)
        groups.setdefault(names, []).append(each)
    head = ["protocol", "layout", "visibility", "cases", "refused", *RESULTS, "right"]
    rows = []
    for names, found in groups.items():
        shares = [max((e.shares[n] for e in found if e.shares), default=0.0) for n in RESULTS]
        refused = sum(bool(e.refused) for e in found)
        rows.append([*names, len(found), refused, *shares, all(e.agrees for e in found)])
    lines = [console.table(head, rows), ""]
    lines += [f"refused: {why}" for why in sorted({e.refused for e in report["cases"]} - {""})]
    for each in report["cases"]:
        if not each.agrees:
            told = f"messages as planned: {each.messages_equal}, shares {each.shares}"
            lines.append(f"wrong: {each.case}: {told}")
    total = f"{len(report['cases'])} cases on {report['ranks']} ranks, {report['refused']} refused"
    return "\n".join([*lines, f"{total}; agrees: {'yes' if report['agrees'] else 'NO'}"])


def main(argv: list[str]) -> int:
    """The command."""
    made = console.parser("verify", DESCRIPTION)
    made.add_argument("--ranks", type=int, default=2, metavar="R", help="number of ranks")
    made.add_argument("--dtype", choices=DTYPES, help="of query, key and value")
    made.add_argument("--layout", choices=LAYOUTS, help="who owns which position")
    made.add_argument("--visibility", choices=RULES, help="who sees whom")
    made.add_argument("--protocol", choices=PROTOCOLS, help="how keys and values travel")
    made.add_argument("--cases", type=int, default=1, metavar="N", help="of each combination")
    made.add_argument("--seq-len", type=int, default=0, metavar="S", help="0: drawn, 1 to 64")
    made.add_argument("--seed", type=int, default=0, help="of the first case; the next adds 1")
    return console.run(argv, made, _command)


def _command(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    report = verify(
        choose(options), time_limit_s=options.time_limit, say=console.progress(options.quiet)
    )
    return report, text(report)
