"""A still picture in a notebook: HTML that a strict comparison of outputs can read.

Owns how a picture shows itself. Leaves out what it shows, and everything that moves.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """HTML that shows as the result of a cell; its text is one constant line.

    Raises: ValueError if the HTML holds a picture without alt text.
    """

    html: str = field(repr=False)

    def __post_init__(self) -> None:
        if "<svg" in self.html and 'aria-label="' not in self.html:
            raise ValueError("html: expected alt text (aria-label) on a picture, received none")

    def __repr__(self) -> str:
        return "<Figure: shown as HTML>"

    def _repr_html_(self) -> str:
        return self.html
