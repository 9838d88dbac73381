"""What the results and the records of real ranks must equal."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from cpcore import Event, ledger, schedule
from cpcore.planner.heads import all_to_all_traffic
from tests.support.autograd import by_autograd
from tests.support.rank_cases import RankCase
from tests.support.rank_workers import Ran, logical
from tests.support.tolerance import Answer, Problem, assert_within, reference, tolerance

RESULTS = ("output", "dq", "dk", "dv")


def wrong_results(case: RankCase, ran: list[Ran]) -> list[str]:
    """The names of results that leave the bound: dense in longdouble, autograd in float64."""
    allowed, wanted = tolerance(case.problem, case.pieces()), reference(case.problem)
    exact = by_autograd(in_float64(case.problem))
    # In float64 autograd rounds as much as we do: twice the bound.
    factor = 2 if case.problem.q.dtype == np.float64 else 1
    doubled = Answer(*(factor * bound for bound in allowed))
    wrong = set()
    for answer, bounds in ((wanted, allowed), (exact, doubled)):
        for name, index in zip(RESULTS, (0, 2, 3, 4), strict=True):
            got = logical(case, ran, name)
            assert got.dtype == case.problem.q.dtype, f"{name}: {got.dtype}"
            try:
                assert_within(name, got, answer[index], bounds[index])
            except AssertionError:
                wrong.add(name)
    return sorted(wrong)


def in_float64(problem: Problem) -> Problem:
    """The same numbers in float64, in which autograd's own rounding is far below float32's."""
    q, k, v, dout = (np.asarray(x, np.float64) for x in (problem.q, problem.k, problem.v,
                                                       problem.dout))  # fmt: skip
    return Problem(q, k, v, problem.visible, problem.factor, problem.keep, dout)


def wrong_messages(case: RankCase, rank: int, ran: Ran) -> list[str]:
    """In what the recorded messages differ from the schedule and from the ledger."""
    events = list(schedule(case.layout, case.visibility, protocol=case.protocol))
    mine = [event for event in events if event.rank == rank]
    wrong = []
    if _recorded(ran) != _planned(mine, _token(case)):
        wrong.append("messages and schedule")
    rows = {row.phase: row for row in _bill(case, events) if row.rank == rank}
    batch = case.problem.q.shape[0]
    for phase in {event.phase for event in events}:
        row, records = rows[phase], [r for r in ran.records if r.phase == phase]
        sent = [record for record in records if record.direction == "sent"]
        received = [record for record in records if record.direction == "received"]
        counted = (
            *(sum(r.elements for r in side) for side in (sent, received)),
            *(sum(r.bytes for r in side) for side in (sent, received)),
            len(sent), int(any(r.collective for r in sent)),
        )  # fmt: skip
        elements = row.elements_sent, row.elements_received, row.bytes_sent, row.bytes_received
        if counted != (*(n * batch for n in elements), row.messages, row.collectives):
            wrong.append(f"{phase} and ledger: {counted}")
    return wrong


def wrong_trades(case: RankCase, rank: int, ran: Ran) -> list[str]:
    """In what the recorded messages of all_to_all differ from the planner's closed form."""
    (batch, q_heads, _, width), kv_heads = case.problem.q.shape, case.problem.k.shape[1]
    tokens, others = case.layout.lengths[rank], case.layout.seq_len - case.layout.lengths[rank]
    traffic = all_to_all_traffic(
        1, case.cp_size, q_heads=q_heads, kv_heads=kv_heads, head_dim=width,
        value_dim=case.problem.v.shape[-1], element_bytes=case.problem.q.itemsize,
    )  # fmt: skip
    wrong, found = [], Counter[tuple[str, str]]()
    for record in ran.records:
        found[record.phase, record.direction] += record.elements
        found[record.phase, "messages"] += record.direction == "sent"
        if record.bytes != record.elements * case.problem.q.itemsize or not record.collective:
            wrong.append(str(record))
    for row in traffic:  # of one token, sent to every other rank
        each = row.elements_sent // max(1, case.cp_size - 1)
        # Into heads a rank sends its tokens and receives the others'; out of them, the reverse.
        inward = row.phase in ("in", "gradient in")
        sent = tokens * (case.cp_size - 1) if inward else others
        received = others if inward else tokens * (case.cp_size - 1)
        wanted = batch * each * sent, batch * each * received, case.cp_size - 1
        got = tuple(found[row.phase, what] for what in ("sent", "received", "messages"))
        if got != wanted:
            wrong.append(f"{row.phase}: {got}, wanted {wanted}")
    return wrong


def _token(case: RankCase) -> int:
    batch, heads, _, width = case.problem.k.shape
    return int(batch * heads * (width + case.problem.v.shape[-1]))


def _recorded(ran: Ran) -> list[tuple[str, int, str, int, int]]:
    return sorted((r.phase, r.step, r.direction, r.peer, r.elements) for r in ran.records)


def _planned(mine: list[Event], token: int) -> list[tuple[str, int, str, int, int]]:
    planned = []
    for e in mine:
        if e.send_to is not None:
            planned.append((e.phase, e.step, "sent", e.send_to, e.sent_tokens * token))
        if e.recv_from is not None:
            planned.append((e.phase, e.step, "received", e.recv_from, e.received_tokens * token))
    return sorted(planned)


def _bill(case: RankCase, events: list[Event]) -> list:  # type: ignore[type-arg]
    (_, q_heads, _, width), (_, kv_heads, _, value_width) = (
        case.problem.q.shape,
        case.problem.v.shape,
    )
    return ledger(
        events, case.layout, q_heads=q_heads, kv_heads=kv_heads, head_dim=width,
        value_dim=value_width, element_bytes=case.problem.q.itemsize,
    )  # fmt: skip


def same_bits(one: NDArray[np.floating], other: NDArray[np.floating]) -> bool:
    """Whether two arrays hold the same bits, signs of zero included."""
    return one.shape == other.shape and one.tobytes() == other.tobytes()
