"""Something to read: text where text is shown, HTML where HTML is.

Owns the two forms and the small pieces of HTML of the museum. Leaves out every fact.
"""

from dataclasses import dataclass
from html import escape

from cpcore.museum.facts import Facts
from cpcore.ui.svg import table


@dataclass(frozen=True)
class Page:
    """Prints as text, and shows as HTML in Jupyter and in the page's Python."""

    text: str
    html: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


def facts_text(facts: Facts) -> str:
    """The table of a symptom, its columns aligned."""
    rows = [facts.columns, *facts.rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(facts.columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def facts_html(facts: Facts) -> str:
    """The picture, which has its own table, or the table."""
    if facts.figure is not None:
        return facts.figure.html
    return f'<div class="cp-table" tabindex="0">{table(facts.columns, facts.rows)}</div>'


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{escape(text, quote=False)}</p>"


def title(text: str) -> str:
    """The title of an exhibit."""
    return f"<p><strong>{escape(text, quote=False)}</strong></p>"


def folded(summary: str, *parts: str, unfolded: bool = False) -> str:
    """Parts that open by a click, or by a key, without any script."""
    opening = '<details open="open">' if unfolded else "<details>"
    head = f"<summary>{escape(summary, quote=False)}</summary>"
    return "\n".join((opening + head, *parts, "</details>"))


def link(text: str, url: str) -> str:
    """A link to a public report."""
    target = f'href="{escape(url)}" rel="noopener noreferrer"'
    return f"<a {target}>{escape(text, quote=False)}</a>"


def frame(*parts: str) -> str:
    """One block of HTML."""
    return "\n".join(('<div class="cp-figure cp-museum">', *parts, "</div>"))
