"""What a visitor sees: small probes of a system, each a table and sometimes a picture.

Owns the probes. The same probe of the right system is the repair of an exhibit. Numbers are small
enough for a pencil wherever that is possible.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from cpcore.dense import dense_attention
from cpcore.dropout import Dropout
from cpcore.layouts import contiguous
from cpcore.loss import LossSum
from cpcore.masks import Visibility
from cpcore.museum.checks import FULL, output_error, random_case
from cpcore.museum.facts import Facts, beside, column, first_column
from cpcore.museum.system import Answer, Case, System, losses, small_model
from cpcore.schedule import schedule
from cpcore.ui.charts import Series, line_chart
from cpcore.ui.svg import num
from cpcore.ui.timeline import timeline

SIZES = (1, 2)


def two_keys(system: System) -> Facts:
    """Scores 0 and ln 3, values 0 and 4, full attention; both positions ask the same."""
    case = Case(column(1, 1), column(0, np.log(3)), column(0, 4), FULL)
    return beside(case, system, SIZES, first_column, "query")


def holes(system: System) -> Facts:
    """Six positions, equal scores, value = position; three rows do not see their own rank."""
    sees = np.ones((6, 6), bool)
    sees[1, :2], sees[2, 2:], sees[5, 2:] = False, False, False
    rule = Visibility(causal=False, relation=sees)
    case = Case(column(*[0] * 6), column(*[0] * 6), column(*range(6)), rule)
    return beside(case, system, (1, 3), first_column, "row")


def prefix_means(system: System) -> Facts:
    """Equal scores, values 1, 2, 4, 8, causal: every output is the mean of a prefix."""
    case = Case(column(0, 0, 0, 0), column(0, 0, 0, 0), column(1, 2, 4, 8), Visibility())
    return beside(case, system, SIZES, first_column, "position")


def distance(system: System) -> Facts:
    """Equal queries and keys, turned by position: the weight of key 0 for each query."""
    rows, first = np.tile([2.0, 0.0], (4, 1)), np.zeros((4, 2))
    first[0] = 1
    case = Case(rows, rows, first, FULL, base=100.0)
    return beside(case, system, SIZES, first_column, "query")


def identity(system: System) -> Facts:
    """Every position sees itself only and its value is its number."""
    rule = Visibility(window=1)
    case = Case(column(*[0] * 8), column(*[0] * 8), column(*range(8)), rule)
    return beside(case, system, SIZES, first_column, "position")


def curve(system: System) -> Facts:
    """The loss of plain gradient descent on one rank and on three."""
    steps, runs = (1, 2, 4, 8, 16), {}
    for size in (1, 3):
        found = losses(system, contiguous(12, size), steps[-1], 0.05, small_model(seed=4))
        runs[f"R = {size}"] = [float(f"{found[step - 1]:.3g}") for step in steps]
    alt = "Loss over steps: " + "; ".join(
        f"{name}: {', '.join(map(num, values))}" for name, values in runs.items()
    )
    lines = [Series(n, steps, y, hollow=n != "R = 1") for n, y in runs.items()]
    figure = line_chart(lines, x_label="step", y_label="loss", alt=alt)
    rows = zip(map(str, steps), *(map(num, y) for y in runs.values()), strict=True)
    return Facts(("step", *runs), tuple(rows), figure)


def three_gradients(system: System) -> Facts:
    """One query that counts, keys 0 and 1, values 0 and 1: dQ, dK and dV."""
    case = Case(column(1, 1), column(0, 1), column(0, 1), FULL, dout=column(1, 0))
    names = ("dQ", "dK of key 0", "dK of key 1", "dV of key 0", "dV of key 1")

    def pick(answer: Answer) -> list[float]:
        dq, dk, dv = (np.asarray(g) for g in answer[2:])
        return [dq[0, 0], *dk[:, 0], *dv[:, 0]]

    facts = beside(case, system, SIZES, pick, "gradient")
    rows = tuple((name, *row[1:]) for name, row in zip(names, facts.rows, strict=True))
    return facts._replace(rows=rows)


def by_owner(system: System) -> Facts:
    """dV added up over the keys of each third of the sequence, and over all keys."""
    case = random_case(5, Visibility())

    def pick(answer: Answer) -> list[float]:
        thirds = np.asarray(answer.dv).reshape(3, -1).sum(axis=-1)
        return [*thirds, thirds.sum()]

    facts = beside(case, system, (1, 3), pick, "keys")
    names = ("0 to 3", "4 to 7", "8 to 11", "all")
    rows = tuple((name, *row[1:]) for name, row in zip(names, facts.rows, strict=True))
    return facts._replace(rows=rows)


def one_seed(system: System) -> Facts:
    """The loss before training, dropout at a fixed seed."""
    model, found = small_model(), []
    for size in (1, 2, 3, 4):
        step = system.step(model, contiguous(12, size), Dropout(0.3, seed=1))
        found.append((str(size), num(step.loss)))
    return Facts(("ranks", "loss"), tuple(found))


def reported(system: System) -> Facts:
    """Losses of four tokens that add up to 16, dealt to ranks in three ways."""
    ways = ([(16.0, 4)], [(6.0, 2), (10.0, 2)], [(6.0, 3), (10.0, 1)])
    rows = [
        (*(", ".join(f"{x:g}" for x in part) for part in zip(*way, strict=True)),
         num(system.loss([LossSum(*part) for part in way])))
        for way in ways
    ]  # fmt: skip
    return Facts(("sum per rank", "labels per rank", "loss"), tuple(rows))


def growth(system: System) -> Facts:
    """The error of a float32 output of 128 positions against float64, by rank count."""
    sizes = (2, 4, 8, 16)
    errors = [float(f"{output_error(system, size):.2g}") for size in sizes]
    rows = [(str(r), f"{e:.1e}" if e > 1e-6 else "rounding only") for r, e in zip(
        sizes, errors, strict=True)]  # fmt: skip
    facts = Facts(("ranks", "error of the output"), tuple(rows))
    if max(errors) <= 1e-6:
        return facts
    alt = f"The error grows with the ranks: {', '.join(row[1] for row in rows)}."
    lines = [Series("float32 run", sizes, errors)]
    return facts._replace(figure=line_chart(lines, x_label="ranks", y_label="error", alt=alt))


def padded(system: System) -> Facts:
    """Three real positions and one slot of padding on two ranks; the padded row has dout 0."""
    rule = Visibility(documents=np.array([0, 0, 0, -1]))
    case = Case(column(0, 0, 0, 0), column(0, 0, 0, 0), column(1, 2, 4, 0), rule,
                dout=column(1, 1, 1, 0))  # fmt: skip
    answer = system.attend(case, contiguous(4, 2))
    dv = np.asarray(answer.dv)[:, 0]
    rows = [(str(i), num(answer.output[i, 0]), num(dv[i])) for i in range(4)]
    return Facts(("slot", "output", "dV"), tuple(rows))


def four_heads(system: System) -> Facts:
    """Four query heads, two key heads with values 1 and 2, equal scores."""
    query, key = np.zeros((4, 4, 1)), np.zeros((2, 4, 1))
    case = Case(query, key, key + np.array([1.0, 2.0])[:, None, None], FULL)
    facts = beside(case, system, SIZES, lambda answer: answer.output[:, 0, 0], "query head")
    before = dense_attention(case.query, case.key, case.value)[0][:, 0, 0]
    rows = tuple((row[0], num(x), *row[1:]) for row, x in zip(facts.rows, before, strict=True))
    return Facts((facts.columns[0], "as trained", *facts.columns[1:]), rows)


def lengths(system: System) -> Facts:
    """Loss and length of the weight gradient at the first step."""
    steps = {size: system.step(small_model(), contiguous(12, size)) for size in (1, 2, 3, 4)}
    rows = [(str(r), num(s.loss), num(float(np.linalg.norm(s.gradient)))) for r, s in steps.items()]
    return Facts(("ranks", "loss", "length of the gradient"), tuple(rows))


def progress(system: System) -> Facts:
    """Four ranks, causal, forward: how far each rank comes."""
    stuck: dict[int, int] = {}
    mail: Counter[tuple[int, int]] = Counter()
    for event in system.events(contiguous(8, 4), Visibility()):
        if event.phase != "forward" or event.rank in stuck:
            continue
        if event.recv_from is not None:
            if not mail[event.recv_from, event.rank]:
                stuck[event.rank] = event.step
                continue
            mail[event.recv_from, event.rank] -= 1
        if event.send_to is not None:
            mail[event.rank, event.send_to] += 1
    ends = (f"waits at step {stuck[r]}" if r in stuck else "finished" for r in range(4))
    return Facts(("rank", "after a minute"), tuple(zip("0123", ends, strict=True)))


def pace(system: System) -> Facts:
    """Documents of 4 and 12 tokens on two ranks: visible pairs per step and rank."""
    layout = system.place([0, 4, 16], 2)
    rule = Visibility(documents=np.repeat([0, 1], [4, 12]))
    work = [[0, 0], [0, 0]]
    for event in schedule(layout, rule, backward=False):
        work[event.step][event.rank] += event.pairs
    figure = timeline({"Two documents": work}, alt="Work of two ranks in two steps.")
    rows: Iterable[tuple[str, ...]] = ((str(t), *map(str, row)) for t, row in enumerate(work))
    return Facts(("step", "pairs of rank 0", "pairs of rank 1"), tuple(rows), figure)
