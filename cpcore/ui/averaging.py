"""Loss explorer: what a token weighs when ranks divide, add, average and rescale in some way.

Exact fractions throughout, so that right means equal. The loss of a token is given; what is shown
is how much of it each way of averaging passes on to the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from cpcore.ui.controls import Choice
from cpcore.ui.explorable import Explorable
from cpcore.ui.svg import (
    DOTS,
    WIDTH,
    at,
    box,
    details,
    disc,
    filled,
    group,
    label,
    svg,
    table,
    verdict,
)

LABELS = {"3-1": (3, 1), "4-4": (4, 4), "4-3-1": (4, 3, 1), "4-4-0": (4, 4, 0), "1-7": (1, 7)}
LOSSES = (2, 10, 6)  # of every token on rank 0, 1, 2
BAR = 96  # height of the tallest bar
CONTROLS = (
    Choice("labels", "Labels per rank", tuple((k, k.replace("-", " | ")) for k in LABELS)),
    Choice("divisor", "Each rank divides by", (("own", "its own count"), ("all", "all counts"))),
    Choice("reduction", "Over ranks", (("mean", "mean, as DDP"), ("sum", "sum"))),
    Choice("scaled", "Loss", (("no", "as it is"), ("yes", "times R"))),
)


@dataclass(frozen=True)
class Facts:
    """What the picture and the table both show."""

    counts: tuple[int, ...]
    divisors: tuple[int, ...]
    factor: Fraction  # of the reduction and of the loss together

    @property
    def spoiled(self) -> bool:
        """Does a rank divide 0 by 0?"""
        return 0 in self.divisors

    @property
    def right(self) -> Fraction:
        """What every token should weigh."""
        return Fraction(1, sum(self.counts))

    @property
    def weights(self) -> list[Fraction]:
        """What a token of each rank weighs; only asked for where no rank divides by 0."""
        return [self.factor / divisor for divisor in self.divisors]

    @property
    def ratios(self) -> set[Fraction]:
        """The weights as multiples of the right one; empty where a rank divides by 0."""
        return set() if self.spoiled else {weight / self.right for weight in self.weights}

    def loss(self, weights: list[Fraction]) -> Fraction:
        """The loss that is descended if the tokens of each rank have these weights."""
        parts = zip(self.counts, weights, LOSSES, strict=False)
        return sum((count * weight * loss for count, weight, loss in parts), Fraction(0))


def facts(labels: str, divisor: str, reduction: str, scaled: str) -> Facts:
    """The facts of one state."""
    counts = LABELS[labels]
    ranks, total = len(counts), sum(counts)
    factor = Fraction(ranks if scaled == "yes" else 1, ranks if reduction == "mean" else 1)
    return Facts(counts, counts if divisor == "own" else (total,) * ranks, factor)


def draw(labels: str, divisor: str, reduction: str, scaled: str) -> tuple[str, ...]:
    """Caption, weights, verdicts and tables of one state."""
    known = facts(labels, divisor, reduction, scaled)
    return _caption(known, divisor == "all"), _bars(known), _instruments(known), _tables(known)


def _caption(known: Facts, shared: bool) -> str:
    """The verdict and one sentence that says why."""
    mark = verdict(known.ratios == {1})
    if known.spoiled:
        why = f"Rank {known.divisors.index(0)} divides 0 by 0, and the NaN reaches every weight."
    elif known.ratios == {1}:
        only = "But only while all ranks have equally many labels."
        why = "So for any labels." if shared else only
    elif len(known.ratios) == 1:
        (ratio,) = known.ratios
        why = f"Every token weighs {ratio} times what it should; the direction is right."
    else:
        least, most = min(known.ratios), max(known.ratios)
        why = f"Tokens weigh from {least} to {most} times what they should: another direction."
    return f"<p>Weights of the tokens: <b>{mark}</b>. {why}</p>"


def _bars(known: Facts) -> str:
    """One bar per token in its rank's color, and a dotted line where all should end."""
    parts = [label(0, 14, "Weight of each token in the update")]
    if known.spoiled:
        parts.append(label(0, 60, "NaN: no token has a weight"))
        return svg(176, "No bars: every weight is NaN.", *parts)
    unit = BAR / float(max(*known.weights, known.right))
    floor, pitch = 30 + BAR, 292 / sum(known.counts)
    owners = [rank for rank, count in enumerate(known.counts) for _ in range(count)]
    texts = []
    for i, rank in enumerate(owners):
        middle, height = pitch * (i + 0.5), unit * float(known.weights[rank])
        parts.append(box(middle - 12, floor - height, 24, height, filled(rank)))
        parts.append(disc(middle, floor + 14, rank))
        texts.append(label(middle, floor + 40, str(known.weights[rank])))
    line = floor - unit * float(known.right)
    parts += [
        group('text-anchor="middle"', *texts),
        f'<path d="M0 {at(floor)}H292" stroke="currentColor"/>',
        f'<path d="M0 {at(line)}H292" stroke="currentColor" {DOTS}/>',
        label(WIDTH, line + 4, str(known.right), anchor="end"),
    ]
    told = ", ".join(str(known.weights[rank]) for rank in owners)
    return svg(176, f"Bars: the tokens weigh {told}; each should weigh {known.right}.", *parts)


def _verdicts(known: Facts) -> list[tuple[str, bool]]:
    """What one could look at, and whether it would be right."""
    straight = len(known.ratios) == 1
    loss = not known.spoiled and known.loss(known.weights) == known.loss(_fair(known))
    return [
        ("loss that is descended", loss),
        ("direction of the gradient", straight),
        ("plain gradient step", known.ratios == {1}),
        ("update of Adam", straight),
    ]


def _fair(known: Facts) -> list[Fraction]:
    return [known.right] * len(known.counts)


def _instruments(known: Facts) -> str:
    """One line per instrument: its name and its verdict."""
    lines = _verdicts(known)
    parts = [label(0, 14, "What is right, what is wrong")]
    for i, (name, right) in enumerate(lines):
        parts += [label(0, 46 + 26 * i, name), label(220, 46 + 26 * i, verdict(right))]
    told = "; ".join(f"{name}: {verdict(right)[2:]}" for name, right in lines)
    return svg(140, f"Verdicts: {told}.", *parts)


def _tables(known: Facts) -> str:
    """Facts per rank, the losses, and the verdicts."""
    ranks = range(len(known.counts))
    nan = ["NaN"] * len(ranks)
    weights = nan if known.spoiled else [str(weight) for weight in known.weights]
    times = nan if known.spoiled else [str(weight / known.right) for weight in known.weights]
    per_rank = table(
        ["rank", *map(str, ranks)],
        [
            ["labels", *map(str, known.counts)],
            ["loss of a token", *(str(LOSSES[rank]) for rank in ranks)],
            ["divides by", *map(str, known.divisors)],
            ["weight of a token", *weights],
            ["times the right one", *times],
        ],
    )
    descended = "NaN" if known.spoiled else str(known.loss(known.weights))
    losses = table(["loss", "descended", "right"], [["", descended, str(known.loss(_fair(known)))]])
    verdicts = table(["", "is"], [[name, verdict(right)] for name, right in _verdicts(known)])
    return details(per_rank, losses, verdicts)


loss_explorer = Explorable(
    name="loss-explorer",
    title="Loss explorer",
    summary=(
        "Ranks of one sequence divide, add or average, and perhaps rescale. The bars show what "
        "each token weighs in the update; the dotted line is what it should weigh."
    ),
    controls=CONTROLS,
    drawing=draw,
)
