"""Still pictures of chapter 7: where ranks meet in a training step, tokens and labels.

Each function draws what it is given and puts a table of the same facts below. None computes a
loss or a label: a picture cannot disagree with the cell that made its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from cpcore.ui.figure import Figure
from cpcore.ui.svg import (
    WIDTH,
    arrow,
    at,
    box,
    details,
    disc,
    filled,
    group,
    label,
    rank_color,
    svg,
    table,
    text_color,
    verdict,
)

# What happens, how the ranks meet there (whole, alone, exchange or sum), and what crosses.
STAGES = (
    ("shift labels, then split", "whole", "no rank exists yet"),
    ("project own rows", "alone", "nothing: weights are copies"),
    ("attention", "exchange", "keys and values"),
    ("own logits and losses", "alone", "nothing"),
    ("loss", "sum", "one sum and one count"),
    ("attention, backward", "exchange", "keys, values; then dk, dv"),
    ("weight gradients", "sum", "every weight: a sum"),
    ("optimizer", "alone", "nothing: equal sums, copies"),
)
ROW = 46  # of the step map
LANES = (0, 62)  # left edges of the two ranks' boxes
HEAD = 96  # width of the row names beside a strip of labels
MOST = 6  # positions of a rank in a strip: more would not leave room for a cross and an id


def step_map() -> Figure:
    """A training step on two ranks, top to bottom: what each does alone and where they meet."""
    parts = []
    for i, (stage, kind, crosses) in enumerate(STAGES):
        y = ROW * i + 4
        parts.append(_lanes(y, kind))
        parts.append(label(120, y + 13, stage, more='font-weight="bold"'))
        parts.append(label(120, y + 30, crosses))
    told = "; ".join(f"{stage}: {crosses}" for stage, _, crosses in STAGES)
    picture = svg(ROW * len(STAGES), f"A training step on two ranks. {told}.", *parts)
    rows = [[stage, kind, crosses] for stage, kind, crosses in STAGES]
    return _figure(picture, details(table(["stage", "ranks", "what crosses"], rows)))


def _lanes(y: float, kind: str) -> str:
    """The boxes of both ranks and what joins them."""
    if kind == "whole":
        shown = label(53, y + 18, "sequence", anchor="middle")
        return box(0, y, 106, 26, 'fill="none" stroke="currentColor"') + shown
    own = [box(x, y, 44, 26, filled(r)) for r, x in enumerate(LANES)]
    own += [
        label(x + 22, y + 18, str(r), anchor="middle", more=f'fill="{text_color(rank_color(r))}"')
        for r, x in enumerate(LANES)
    ]
    if kind == "exchange":
        own += [arrow(45, y + 8, 61, y + 8), arrow(61, y + 19, 45, y + 19)]
    if kind == "sum":
        plus = f"M47 {at(y + 13)}h12M53 {at(y + 7)}v12"
        own.append(f'<path d="{plus}" stroke="currentColor" stroke-width="2"/>')
    return "".join(own)


def token_weights(ranks: Sequence[int], ways: Mapping[str, Sequence[Fraction]]) -> Figure:
    """One bar of length one per way to average, cut into the weight that it gives each token.

    Tokens have equal weights in the mean over all of them, so any other way is marked wrong.

    Raises: ValueError without a way, or unless each has one weight per token and they add up to 1.
    """
    if not ways:
        raise ValueError("ways: expected at least one, received none")
    for name, weights in ways.items():
        if len(weights) != len(ranks) or sum(weights, Fraction(0)) != 1:
            received = f"{name!r}: {', '.join(map(str, weights))}"
            raise ValueError(
                f"ways: expected {len(ranks)} weights that add up to 1, received {received}"
            )
    parts, told, rows = [], [], []
    for i, (name, weights) in enumerate(ways.items()):
        mark = verdict(len(set(weights)) == 1)
        parts += [label(0, 74 * i + 14, f"{name} {mark}"), _weights(ranks, weights, 74 * i + 22)]
        told.append(f"{name}, {mark[2:]}: {', '.join(map(str, weights))}")
        rows.append([name, *map(str, weights), mark])
    picture = svg(74 * len(ways), f"Weight of each token in the loss. {'; '.join(told)}.", *parts)
    columns = ["way", *(f"token {i} (rank {r})" for i, r in enumerate(ranks)), "mean"]
    return _figure(picture, details(table(columns, rows)))


def _weights(ranks: Sequence[int], weights: Sequence[Fraction], y: float) -> str:
    """One bar; below each piece its rank."""
    bars, texts, x = [], [], 1.0
    for rank, weight in zip(ranks, weights, strict=True):
        width = (WIDTH - 2) * float(weight)
        bars.append(box(x, y, width, 22, filled(rank)))
        ink = f'fill="{text_color(rank_color(rank))}"'
        texts.append(label(x + width / 2, y + 16, str(weight), more=ink))
        texts.append(disc(x + width / 2, y + 34, rank))
        x += width
    return "".join(bars) + group('text-anchor="middle"', *texts)


def label_strip(
    tokens: Sequence[Sequence[int]], first: Sequence[Sequence[int]], late: Sequence[Sequence[int]]
) -> Figure:
    """Per rank: its tokens, their labels shifted before the split, and shifted after it.

    A label below 0 counts for nothing and is drawn as a dash.

    Raises: ValueError unless the ranks have equally many of each, 1 to 6.
    """
    for rank, lists in enumerate(zip(tokens, first, late, strict=True)):
        sizes = [len(list(ids)) for ids in lists]
        if len(set(sizes)) > 1 or not 1 <= sizes[0] <= MOST:
            raise ValueError(f"tokens: expected 1 to {MOST} per rank, received {rank}: {sizes}")
    parts, rows = [], []
    for rank, (ids, good, bad) in enumerate(zip(tokens, first, late, strict=True)):
        y = 124 * rank + 4
        parts += [disc(9, y + 14, rank), label(22, y + 18, "tokens")]
        parts.append(label(0, y + 50, "shift first"))
        right = list(good) == list(bad)
        parts += [label(0, y + 81, "split first"), label(0, y + 97, verdict(right))]
        for i, (token, one, other) in enumerate(zip(ids, good, bad, strict=True)):
            x = HEAD + 39 * i
            ink = f'fill="{text_color(rank_color(rank))}"'
            outline = 'fill="none" stroke="currentColor" stroke-width=".8"'
            parts += [box(x, y, 37, 26, filled(rank)), box(x, y + 32, 37, 26, outline)]
            parts.append(box(x, y + 70, 37, 26, outline))
            cross = "" if one == other else "\N{BALLOT X} "
            shown = [(18, str(token), ink), (50, _id(one), ""), (88, cross + _id(other), "")]
            parts += [label(x + 18.5, y + d, t, anchor="middle", more=m) for d, t, m in shown]
            rows.append([f"rank {rank}", str(token), _id(one), _id(other), verdict(one == other)])
    faults = sum(row[-1] == verdict(False) for row in rows)
    alt = f"Labels of {len(tokens)} ranks; shifted after the split, {faults} of {len(rows)} differ."
    columns = ["rank", "token", "label, shift first", "label, split first", "split first is"]
    return _figure(svg(124 * len(tokens) - 16, alt, *parts), details(table(columns, rows)))


def _id(label_id: int) -> str:
    return str(int(label_id)) if label_id >= 0 else "\N{EN DASH}"


def _figure(*parts: str) -> Figure:
    return Figure("\n".join(('<div class="cp-figure">', *parts, "</div>")))
