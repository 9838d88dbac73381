"""Two directives for Markdown pages: a named explorable, and the legend of the drawings.

Both insert HTML that `cpcore.ui` draws, the same that a notebook stores as the output of a cell.
"""

from __future__ import annotations

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

TILES = (
    ("full", "every pair is seen"),
    ("partial", "some pairs are seen"),
    ("skipped", "no pair is seen"),
    ("empty", "the rank owns nothing"),
)


class Explorable(SphinxDirective):
    """`:::{explorable} NAME`: first picture, table and controls of a catalogue entry.

    Options: `:step: N` opens it at that step instead of 0.
    """

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"step": directives.nonnegative_int}

    def run(self) -> list[nodes.Node]:
        """The fragment, or a warning that names what exists."""
        from cpcore.ui import catalogue

        name = self.arguments[0]
        if name not in catalogue:
            raise self.error(f"explorable: expected one of {sorted(catalogue)}, received {name!r}")
        return [nodes.raw("", catalogue[name].html(**self.options), format="html")]


class Legend(SphinxDirective):
    """`:::{legend}`: how ranks, blocks and summaries are drawn."""

    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """The drawing."""
        return [nodes.raw("", legend(), format="html")]


def legend() -> str:
    """Ranks by color and number, the four kinds of score block, and a summary."""
    from cpcore.ui import svg
    from cpcore.ui.summaries import Summary, cells

    ranks = [svg.disc(14 + 40 * rank, 34, rank) for rank in range(len(svg.RANK_COLORS))]
    tiles = []
    for i, (kind, meaning) in enumerate(TILES):
        y = 84 + 34 * i
        tiles += [svg.tile(4, y, 24, kind, 1), svg.label(40, y + 17, f"{kind}: {meaning}")]
    left = svg.svg(
        224,
        "Eight numbered discs, one color per rank. Below, four square tiles: full is filled, "
        "partial is filled below its diagonal, skipped is hatched, empty has a dotted outline.",
        svg.label(4, 14, "Ranks keep their color and their number"),
        *ranks,
        svg.label(4, 72, "Score blocks: queries down, keys to the right"),
        *tiles,
    )
    right = svg.svg(
        150,
        "Two summaries of three cells, max, sum and output. The first, of rank 1, holds 2, 1.5 "
        "and 4.5 and is filled. The second is empty with a dotted outline: max minus infinity.",
        cells(1, 0, "A summary, in its rank's color", Summary(2, 1.5, 4.5), 1),
        cells(1, 78, "A summary that saw nothing", Summary(float("-inf"), 0, 0)),
    )
    return f'<div class="cp-legend">{left}{right}</div>'


def setup(app: Sphinx) -> dict[str, Any]:
    """Register both directives."""
    app.add_directive("explorable", Explorable)
    app.add_directive("legend", Legend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
