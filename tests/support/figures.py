"""What a still figure shows: its pictures, its tables and its words."""

from __future__ import annotations

from xml.etree import ElementTree

from cpcore.ui.figure import Figure


def parsed(figure: Figure) -> ElementTree.Element:
    """The figure, which must be well-formed XML."""
    return ElementTree.fromstring(figure.html)


def pictures(figure: Figure) -> list[ElementTree.Element]:
    """Its drawings, in order."""
    return list(parsed(figure).iter("svg"))


def cells(figure: Figure) -> list[list[str]]:
    """The text of every table row, cell by cell."""
    return [["".join(c.itertext()) for c in row] for row in parsed(figure).iter("tr")]


def words(picture: ElementTree.Element) -> list[str]:
    """Every text of a drawing."""
    return [text.text or "" for text in picture.iter("text")]
