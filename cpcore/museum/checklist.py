"""The checklist itself: names, order and reasons of the twelve checks of `checks`.

The order is that of a careful person: forward, then backward, then the step around both, then what
needs no array at all.
"""

from cpcore.museum import checks
from cpcore.museum.checks import Check

CHECKLIST: tuple[Check, ...] = (
    Check(
        "heads",
        "Full attention, grouped heads, against dense",
        "No mask can hide a wrong merge, and a repeated head is compared with an explicit one.",
        checks.heads,
    ),
    Check(
        "positions",
        "Causal, turned, two places per rank, against dense",
        "Zigzag gives every rank two places of the text: local counting fits neither.",
        checks.positions,
    ),
    Check(
        "unseen",
        "A row whose first block shows it nothing",
        "An empty summary must be neutral before there is anything to merge it with.",
        checks.unseen,
    ),
    Check(
        "padding",
        "NaN in every padded slot",
        "A mask gives weight 0, and 0 · NaN is NaN: padding must not enter a product.",
        checks.padding,
    ),
    Check(
        "dq_dk",
        "dQ and dK against dense",
        "dK needs the whole row's delta and the whole trip home.",
        lambda system: checks.both(*checks.gradients(system)[:2]),
    ),
    Check(
        "dv",
        "dV against dense",
        "It needs the probabilities and the trip, but never delta: compare it with the line above.",
        lambda system: checks.gradients(system)[2],
    ),
    Check(
        "one_hot",
        "One-hot dout lands on the owner of the keys",
        "A sum over all ranks can be right while a share sits at the wrong address.",
        checks.one_hot,
    ),
    Check(
        "dropout",
        "Dropout: R = 1 and R = 4 drop the same",
        "Only the same noise makes two runs comparable at all.",
        checks.dropout,
    ),
    Check(
        "drift",
        "Error on 16 ranks against error on two",
        "A tolerance on one setting says nothing about growth.",
        checks.drift,
    ),
    Check(
        "loss",
        "Loss of unequal counts: R = 1 and R = 3",
        "Equal counts forgive a mean of means; the prompt makes them unequal.",
        checks.loss,
    ),
    Check(
        "weights",
        "Weight gradient: R = 1 and R = 3",
        "The update is what training is about, and no loss curve shows its size.",
        checks.weights,
    ),
    Check(
        "counts",
        "Count messages and pairs per rank",
        "No array can show a message that is missing on one rank, or work that is uneven.",
        checks.counts,
    ),
)
BY_ID = {check.id: check for check in CHECKLIST}
