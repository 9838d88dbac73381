"""Split explorer: eight keys cut into chunks, each softmaxed alone, and the mean of the answers.

The numbers come from the core by way of `split_facts`; `split_panels` draws them; this
module puts the words and the tables to the picture.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cpcore.ui.controls import Choice
from cpcore.ui.explorable import Explorable
from cpcore.ui.split_facts import KEYS, SPLITS, Facts, facts
from cpcore.ui.split_panels import answers_panel, weights_panel
from cpcore.ui.svg import details, num, table, verdict

CONTROLS = (
    Choice(
        "split",
        "Keys per rank",
        tuple((name, " | ".join(map(str, sizes))) for name, sizes in SPLITS.items()),
    ),
    Choice(
        "scores",
        "Scores",
        (
            ("rising", "rising"),
            ("uniform", "all equal"),
            ("peak", "one peak, key 5"),
            ("equal-masses", "equal masses in halves"),
            ("future", "rising, keys 4 to 7 in the future"),
        ),
    ),
    Choice(
        "values",
        "Values",
        (
            ("mixed", "mixed"),
            ("alternating", "2 and 6 in turn"),
            ("constant", "all 5"),
            ("one", "only key 5 has one"),
        ),
    ),
)


def draw(**values: Any) -> tuple[str, ...]:
    """Caption, weights, answers and tables of one state."""
    known = facts(**values)
    return (_caption(known), weights_panel(known), answers_panel(known), _tables(known))


def _caption(known: Facts) -> str:
    """The verdict and one sentence that says why."""
    count = int(known.seeing.sum())
    shares = known.shares[known.seeing]
    if count == 1:
        why = "Only one rank sees a key, so its answer is the whole answer, for every V."
    elif np.ptp(shares) < 1e-12:
        why = f"Each of the {count} ranks that see a key holds the same mass: right for every V."
    elif known.right:
        why = "By accident: the masses differ, only these values hide it."
    else:
        top = int(np.argmax(known.shares))
        why = (
            f"The mean gives 1/{count} = {num(1 / count)} to each rank that sees a key; "
            f"rank {top} holds {num(known.shares[top])} of the mass."
        )
    off = "rounding only" if known.right else num(known.error)
    return (
        f"<p>Mean {num(known.mean)}, exact {num(known.exact)}: <b>{verdict(known.right)}</b>. "
        f"Difference: {off}. {why}</p>"
    )


def _tables(known: Facts) -> str:
    """Facts per key and per rank, and the error twice."""
    keys = range(KEYS)
    seen = known.visible
    per_key = table(
        ["key", *map(str, keys)],
        [
            ["rank", *map(str, known.owners)],
            ["score", *(num(known.scores[i]) if seen[i] else "masked" for i in keys)],
            ["value", *map(num, known.values)],
            ["weight alone", *map(num, known.alone)],
            ["exact weight", *map(num, known.exact_weights)],
        ],
    )
    per_rank = table(
        ["rank", *map(str, range(len(known.sizes)))],
        [
            ["say in mean", *map(num, known.say)],
            ["share", *map(num, known.shares)],
            [
                "output",
                *(
                    num(o) if b else "none"
                    for o, b in zip(known.outputs, known.seeing, strict=True)
                ),
            ],
        ],
    )
    result = table(
        ["answer", "mean", "exact", "mean \N{MINUS SIGN} exact", "by formula"],
        [["result", *map(num, (known.mean, known.exact, known.error, known.formula))]],
    )
    return details(per_key, per_rank, result)


split_explorer = Explorable(
    name="split-explorer",
    title="Split explorer",
    summary=(
        "Eight keys, one query. Cut the keys, let each rank finish its own softmax, and compare "
        "the mean of the answers with the exact one. A color and a number are a rank."
    ),
    controls=CONTROLS,
    drawing=draw,
)
