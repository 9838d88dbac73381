"""One public checklist of twelve checks, each a function of a system.

A check knows nothing of any fault. It compares with dense attention, with the same system on one
rank, or it counts. Together they tell all exhibits apart: `examination` shows it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, get_args

import numpy as np

from cpcore.checks import Array
from cpcore.dense import dense_attention, dense_attention_backward
from cpcore.dropout import Dropout
from cpcore.layouts import contiguous, zigzag
from cpcore.masks import Visibility
from cpcore.museum.system import Case, Step, System, small_model
from cpcore.positions import rotary
from cpcore.schedule import Phase

FULL = Visibility(causal=False)
LOWER = np.tril(np.ones((12, 12), bool))


class Verdict(NamedTuple):
    """Whether a system passed, and what was seen."""

    passed: bool
    saw: str


@dataclass(frozen=True)
class Check:
    """One line of the checklist: what is done, and why it cannot be fooled easily."""

    id: str
    title: str
    why: str
    probe: Callable[[System], Verdict]

    def run(self, system: System) -> Verdict:
        """The verdict. A system that refuses or never answers has failed."""
        try:
            return self.probe(system)
        except ValueError as error:
            return Verdict(False, f"no result ({str(error).partition(',')[0]})")


def compare(got: Array | float | None, want: Array | float) -> Verdict:
    """Equal within rounding, or by how much not, as a share of the largest wanted entry."""
    mine, right = np.asarray(got, float), np.asarray(want, float)
    if np.isnan(mine).any():
        return Verdict(False, "NaN")
    seen = np.isfinite(right)
    if not np.array_equal(np.isfinite(mine), seen):
        return Verdict(False, "infinite where it should not be")
    scale = np.abs(right[seen]).max()
    worst = np.abs(mine[seen] - right[seen]).max() / scale
    if worst <= 100 * np.finfo(float).eps:
        return Verdict(True, "rounding only")
    return Verdict(False, f"off by {worst:.2g} of the largest entry")


def both(first: Verdict, second: Verdict) -> Verdict:
    """The first that failed, or the second."""
    return second if first.passed else first


def random_case(seed: int, rule: Visibility, size: int = 12) -> Case:
    """Random query, key, value and dout of one head."""
    q, k, v, dout = np.random.default_rng(seed).standard_normal((4, size, 4))
    return Case(q, k, v, rule, dout=dout)


def heads(system: System) -> Verdict:
    """Four query heads on two key heads, full attention, three ranks: output against dense."""
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((n, 12, 4)) for n in (4, 2, 2))
    answer = system.attend(Case(q, k, v, FULL), contiguous(12, 3))
    return compare(answer.output, dense_attention(q, k, v)[0])


def positions(system: System) -> Verdict:
    """Causal, turned by position, two places of the text on each rank: output against dense."""
    case = replace(random_case(2, Visibility()), base=100.0, dout=None)
    q, k = (rotary(x, np.arange(12), base=100.0) for x in (case.query, case.key))
    want, _ = dense_attention(q, k, case.value, visible=LOWER)
    return compare(system.attend(case, zigzag(12, 3)).output, want)


def unseen(system: System) -> Verdict:
    """Rows that see nothing in the first block that they meet: output and lse against dense."""
    sees = np.ones((6, 6), bool)
    sees[1, :2], sees[2, 2:], sees[5, 2:] = False, False, False
    case = replace(random_case(3, Visibility(causal=False, relation=sees), 6), dout=None)
    answer = system.attend(case, contiguous(6, 3))
    want, lse = dense_attention(case.query, case.key, case.value, visible=sees)
    return both(compare(answer.output, want), compare(answer.lse, lse))


def padding(system: System) -> Verdict:
    """NaN in every padded slot: output and gradients against dense, padded rows 0."""
    rule = Visibility(documents=np.array([0, 0, 0, -1, 1, 1, 1, -1]))
    clean = random_case(4, rule, 8)
    arrays = [np.array(x) for x in (clean.query, clean.key, clean.value, np.asarray(clean.dout))]
    for array in arrays:
        array[[3, 7]] = np.nan
    q, k, v, dout = arrays
    answer = system.attend(Case(q, k, v, rule, dout=dout), contiguous(8, 2))
    q, k, v, dout = (np.nan_to_num(array) for array in arrays)
    sees = np.kron(np.eye(2), np.tril(np.ones((4, 4)))) > 0
    sees[[3, 7]], sees[:, [3, 7]] = False, False
    verdict = compare(answer.output, dense_attention(q, k, v, visible=sees)[0])
    for got, want in zip(
        answer[2:], dense_attention_backward(q, k, v, dout, visible=sees), strict=True
    ):
        verdict = both(verdict, compare(got, want))
    return verdict


@lru_cache(maxsize=1)  # two checks look at one run
def gradients(system: System) -> list[Verdict]:
    """dQ, dK and dV of three ranks, causal, random dout, against dense."""
    case = random_case(5, Visibility())
    dout = np.asarray(case.dout)
    right = dense_attention_backward(case.query, case.key, case.value, dout, visible=LOWER)
    answer = system.attend(case, contiguous(12, 3))
    return [compare(got, want) for got, want in zip(answer[2:], right, strict=True)]


def one_hot(system: System) -> Verdict:
    """One row of rank 2 has a gradient and sees rank 0 only: dK must land on rank 0."""
    sees = np.zeros((12, 12), bool)
    sees[:, :4] = True
    dout = np.zeros((12, 4))
    dout[8, 0] = 1
    case = replace(random_case(6, Visibility(causal=False, relation=sees)), dout=dout)
    answer = system.attend(case, contiguous(12, 3))
    landed = np.flatnonzero(np.abs(np.asarray(answer.dk)).max(axis=-1) > 1e-9) // 4
    ranks = sorted(set(landed.tolist()))
    return Verdict(ranks == [0], f"dK on ranks {ranks}")


def dropout(system: System) -> Verdict:
    """One seed, causal: the output on four ranks against that on one."""
    case = replace(random_case(7, Visibility()), dropout=Dropout(0.3, seed=1), dout=None)
    one, four = (system.attend(case, contiguous(12, size)).output for size in (1, 4))
    return compare(four, one)


def drift(system: System) -> Verdict:
    """float32, full attention: the error on 16 ranks is at most twice that on two."""
    errors = [output_error(system, size) for size in (2, 16)]
    small = errors[1] <= 2 * errors[0]
    return Verdict(small, f"{'at most' if small else 'more than'} twice the error on two ranks")


def output_error(system: System, cp_size: int) -> float:
    """Root mean square error of a float32 output of 128 positions."""
    q, k, v = np.random.default_rng(8).standard_normal((3, 128, 4)).astype(np.float32)
    output = system.attend(Case(q, k, v, FULL), contiguous(128, cp_size)).output
    exact, _ = dense_attention(*(x.astype(np.float64) for x in (q, k, v)))
    return float(np.sqrt(np.mean((output - exact) ** 2)))


@lru_cache(maxsize=1)  # two checks look at one run
def steps(system: System) -> list[Step]:
    """One training step on one rank and on three."""
    return [system.step(small_model(), contiguous(12, size)) for size in (1, 3)]


def loss(system: System) -> Verdict:
    """Unequal counts of labels: the loss on three ranks against that on one."""
    one, three = steps(system)
    return compare(three.loss, one.loss)


def weights(system: System) -> Verdict:
    """The gradient of the projections on three ranks against that on one."""
    one, three = steps(system)
    return compare(three.gradient, one.gradient)


def counts(system: System) -> Verdict:
    """Every rank sends R - 1 messages a phase; documents of 4 and 12 give equal work."""
    sent = {phase: [0] * 3 for phase in get_args(Phase)}
    for event in system.events(contiguous(12, 3), Visibility()):
        sent[event.phase][event.rank] += event.send_to is not None
    for phase, messages in sent.items():
        if messages != [2, 2, 2]:
            return Verdict(False, f"{phase} messages per rank {messages}")
    rule, every = Visibility(documents=np.repeat([0, 1], [4, 12])), np.arange(16)
    pairs = [rule.pairs(own, every) for own in system.place([0, 4, 16], 2).owned]
    return Verdict(pairs[0] == pairs[1], f"pairs per rank {pairs}")
