"""Network lab: one scalar graph to predict and step through, beside a two-chunk sum.

The graph is plain arithmetic; the two-chunk sum comes from the core, on the same cursor.
"""

from __future__ import annotations

from cpcore.ui.controls import Choice, IntRange, Step
from cpcore.ui.explorable import Explorable
from cpcore.ui.network_facts import BIAS, LAST, SCORES, VALUES, Scalar, TwoChunks, two_chunks
from cpcore.ui.summaries import merge_picture
from cpcore.ui.svg import arrow, details, group, label, num, svg, table, verdict

RANGES = {
    "none": ("not yet", 0.0, 0.0),
    "0.0": ("below 0.2", 0.0, 0.2),
    "0.2": ("0.2 to 0.4", 0.2, 0.4),
    "0.4": ("0.4 to 0.6", 0.4, 0.6),
    "0.6": ("0.6 to 0.8", 0.6, 0.8),
    "0.8": ("above 0.8", 0.8, 1.0),
}
CONTROLS = (
    IntRange("x", "x", -2, 3, 2, live=(-9, 9)),
    IntRange("w", "w", -1, 2, 1, live=(-9, 9)),
    Choice("guess", "My prediction", tuple((name, r[0]) for name, r in RANGES.items())),
    Step("step", "Step", LAST),
)
ADDED = (
    "<ul><li>Keys and values that live on other ranks</li><li>A mask by global positions</li>"
    "<li>Summaries merged over ranks, divided once</li>"
    "<li>Gradients of keys and values returned to their owners</li></ul>"
)


def draw(x: int, w: int, guess: str, step: int) -> tuple[str, ...]:
    """Caption, scalar graph, two-chunk sum, what distribution adds, and table of one state."""
    graph, chunks = Scalar(x, w), two_chunks()
    return (
        _caption(graph, guess, step), _graph(graph, step), _sum(chunks, step),
        f'<div class="cp-note"><p>A distributed attention adds what this graph has none of:</p>'
        f"{ADDED}</div>",
        _table(graph, chunks, guess, step),
    )  # fmt: skip


def inside(guess: str, out: float) -> bool:
    """Does the sigmoid lie in the predicted range? Its lower border belongs to it."""
    _, low, high = RANGES[guess]
    return low <= out < high


def _caption(graph: Scalar, guess: str, step: int) -> str:
    """One sentence for the graph, one for the two-chunk sum."""
    left = (
        "Choose a range for the sigmoid, then Step."
        if guess == "none"
        else f"You predict {RANGES[guess][0]}. Step to the product.",
        f"The product is {num(graph.product)}.",
        f"Adding the bias gives {num(graph.total)}.",
        _compared(graph, guess),
        f"Backward: the sigmoid's slope is {num(graph.slope)}, so a small change of w counts "
        f"{num(graph.x)} times that.",
    )[step]
    right = (
        "",
        " Chunk A is summarized, relative to its own maximum.",
        " Chunk B is summarized, relative to another maximum.",
        " Both summaries are brought to one maximum and added.",
        " The merged output is divided once: the softmax over all four keys.",
    )[step]
    return f"<p>{left}{right}</p>"


def _compared(graph: Scalar, guess: str) -> str:
    """The prediction against the value."""
    found = f"sigmoid({num(graph.total)}) = {num(graph.out)}."
    if guess == "none":
        return f"{found} No prediction was made: Reset and choose one first."
    return f"{found} You predicted {RANGES[guess][0]}: <b>{verdict(inside(guess, graph.out))}</b>."


def _graph(graph: Scalar, step: int) -> str:
    """Five circles; a value shows once the cursor has reached its node."""
    ops = (
        (130, 62, "\N{MULTIPLICATION SIGN}", graph.product, 1),
        (210, 62, "+", graph.total, 2),
        (294, 62, "\N{GREEK SMALL LETTER SIGMA}", graph.out, 3),
    )
    inputs = ((34, 32, "x", graph.x), (34, 102, "w", graph.w), (210, 132, "b", BIAS))
    parts = [_node(x, y, name, f"{name} = {num(value)}", True) for x, y, name, value in inputs]
    for x, y, name, value, when in ops:
        parts.append(_node(x, y, name, num(value) if step >= when else "?", step >= when))
    parts += [
        arrow(53, 37, 112, 56), arrow(53, 95, 112, 69), arrow(149, 62, 190, 62),
        arrow(229, 62, 274, 62), arrow(210, 113, 210, 100),
    ]  # fmt: skip
    if step == LAST:
        parts += [label(0, 192, "Gradient of the output with respect to")] + [
            label(12 + 108 * i, 212, f"{name}: {num(value)}")
            for i, (name, value) in enumerate(_gradients(graph))
        ]
    shown = [num(value) if step >= when else "?" for *_, value, when in ops]
    alt = f"Graph: product {shown[0]}, sum {shown[1]}, sigmoid {shown[2]}."
    return svg(218, alt, *parts)


def _gradients(graph: Scalar) -> tuple[tuple[str, float], ...]:
    """d out / d x, w and b."""
    slope = graph.slope
    return (("x", slope * graph.w), ("w", slope * graph.x), ("b", slope))


def _node(x: float, y: float, name: str, below: str, known: bool) -> str:
    """A circle with its name inside and its value below."""
    width = "1.6" if known else '.8" stroke-dasharray="2 3'
    return (
        f'<circle cx="{x}" cy="{y}" r="18" fill="none" stroke="currentColor" '
        f'stroke-width="{width}"/>'
        + label(x, y + 4.5, name, anchor="middle")
        + label(x, y + 34, below, anchor="middle")
    )


def _sum(chunks: TwoChunks, step: int) -> str:
    """The worked sum on the same cursor."""
    picture = merge_picture(
        ("chunk a", chunks.left if step >= 1 else None, 0),
        ("chunk b", chunks.right if step >= 2 else None, 1),
        chunks.merged if step >= 3 else None,
        chunks.factors if step >= 3 else None,
    )
    end = "one division: ?"
    if step == LAST:
        same = verdict(abs(chunks.result - chunks.dense) < 1e-12)
        end = (
            f"{num(chunks.merged.output)} \N{DIVISION SIGN} {num(chunks.merged.sum)} = "
            f"{num(chunks.result)}, dense {num(chunks.dense)}: {same}"
        )
    alt = f"Two summaries merged, {step} of {LAST} steps shown. {end}."
    inputs = []
    for x, name, scores, values in (
        (1, "chunk a", "0, ln 2", VALUES[0]),
        (180, "chunk b", "ln 4, 0", VALUES[1]),
    ):
        inputs.append(label(x, 12, f"{name}: scores {scores}"))
        inputs.append(label(x, 30, "values " + ", ".join(map(num, values))))
    moved = group('transform="translate(0 40)"', picture)
    return svg(232, alt, *inputs, moved, label(0, 224, end))


def _table(graph: Scalar, chunks: TwoChunks, guess: str, step: int) -> str:
    """Both columns of the lab, as far as the cursor has come."""
    nodes = [("product", graph.product, 1), ("sum", graph.total, 2), ("sigmoid", graph.out, 3)]
    rows = [["x", num(graph.x)], ["w", num(graph.w)], ["b", num(BIAS)]]
    rows += [[name, num(value) if step >= when else "?"] for name, value, when in nodes]
    rows += [
        [f"gradient of {name}", num(value) if step == LAST else "?"]
        for name, value in _gradients(graph)
    ]
    rows.append(["prediction", RANGES[guess][0]])
    sides = (
        ("chunk a", chunks.left, 1, num(chunks.factors[0])),
        ("chunk b", chunks.right, 2, num(chunks.factors[1])),
        ("merged", chunks.merged, 3, ""),
    )
    sums = [
        [name, *map(num, side.numbers), factor if step >= 3 else ""]
        if step >= when
        else [name, "?", "?", "?", ""]
        for name, side, when, factor in sides
    ]
    inputs = [
        [f"chunk {name}", ", ".join(map(num, s)), ", ".join(map(num, v))]
        for name, s, v in zip("ab", SCORES, VALUES, strict=True)
    ]
    results = (num(chunks.result), num(chunks.dense)) if step == LAST else ("?", "?")
    return details(
        table(["node", "value"], rows),
        table(["keys of", "scores", "values"], inputs),
        table(["summary", "max", "sum", "output", "factor"], sums),
        table(["answer", "divided", "dense"], [["result", *results]]),
    )


network_lab = Explorable(
    name="network-lab",
    title="Network lab",
    summary=(
        "One scalar graph, bias \N{MINUS SIGN}0.5: Reset, predict its sigmoid, then Step. The same "
        "cursor runs the sum over two chunks of two keys; its numbers prove the merge."
    ),
    controls=CONTROLS,
    drawing=draw,
)
