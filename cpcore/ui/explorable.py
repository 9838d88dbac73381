"""One explorable: controls, and a pure function from their values to a small HTML fragment.

The same object shows as live widgets in Jupyter and as native controls in the built page. Python
draws every picture; the page only switches between pictures drawn when the book was built.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import Any

from cpcore.ui.controls import Control, check
from cpcore.ui.shown import Shown


@dataclass(frozen=True)
class Explorable(Shown):
    """A named entry of the catalogue.

    ``drawing`` receives every control by name and returns parts of HTML: the first is the caption
    (one line, announced to screen readers), the others are panels and the table. A line is the
    unit that the page's data file stores once, however many states share it.
    """

    widgets = "cpcore.ui.widget"

    name: str
    title: str
    summary: str  # what it shows and how to read it, above the controls
    controls: tuple[Control, ...]
    drawing: Callable[..., tuple[str, ...]]

    def lines(self, **values: object) -> tuple[str, ...]:
        """Caption, panels and table for these values, line by line; the rest keep their default.

        Raises: ValueError naming the control, what it accepts and what was received.
        """
        known = {control.name: control for control in self.controls}
        for name, value in values.items():
            if name not in known:
                wanted = ", ".join(known)
                raise ValueError(f"control: expected one of {wanted}, received {name!r}")
            check(known[name], value)
        drawn = "\n".join(self.drawing(**(self.defaults() | values)))
        return tuple(line for line in drawn.split("\n") if line)

    def draw(self, **values: object) -> str:
        """The fragment for these control values, one line per part."""
        return "\n".join(self.lines(**values))

    def defaults(self) -> dict[str, Any]:
        """The state that Reset restores and that the page shows first."""
        return {control.name: control.default for control in self.controls}

    def states(self) -> Iterator[dict[str, Any]]:
        """Every state of the stated grid; the last control varies fastest."""
        names = [control.name for control in self.controls]
        for values in product(*(control.values for control in self.controls)):
            yield dict(zip(names, values, strict=True))

    def html(self, **values: object) -> str:
        """First picture and table, with what the page script needs to add the controls.

        With values, the page opens in that state; Reset still restores the defaults.

        Raises: ValueError as `lines`.
        """
        caption, *parts = self.lines(**values)
        first = self.defaults() | values
        places = json.dumps([c.values.index(first[c.name]) for c in self.controls])
        spec = escape(json.dumps([c.spec() for c in self.controls], ensure_ascii=False))
        title = escape(self.title)
        return "\n".join(
            (
                f'<div class="cp-explorable" role="group" aria-label="{title}" '
                f'data-explorable="{escape(self.name)}" data-controls="{spec}" '
                f'data-places="{places}">',
                f'<p class="cp-title"><strong>{title}.</strong> {escape(self.summary)}</p>',
                '<p class="cp-still">This is the first picture. The controls appear where '
                "scripts run.</p>",
                f'<div class="cp-say">{caption}</div>',
                '<div class="cp-stage">',
                *parts,
                "</div>",
                "</div>",
            )
        )

    def __repr__(self) -> str:
        return f"Explorable {self.name}: {self.title}"
