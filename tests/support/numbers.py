"""Numbers in prose: which ones claim something, and what backs each of them.

A number claims something if it has a decimal point, a percent sign or a unit. It is backed by a
number that a cell of the same page prints or asserts, or by a link to a source in its paragraph.
"""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

UNITS = (
    r"(?:[kMGT]i?)?B(?:/s)?|(?:kilo|mega|giga|tera)?(?:bytes?|bits?)(?:/s| per second)?|[GMT]bit/s|"
    r"[munµ]s|s|(?:milli|micro)?seconds?|minutes?|hours?|days?|"
    r"[kMGTP]?(?:flops?|FLOPs?|flop/s)|[kMG]?Hz|W"
)
# A sign or letter before it makes it part of a name: float16, arXiv:1805.02867, 2.13.0.
NUMBER = r"(?<![\w.,:/#§])(?<!\w-)\d[\d,]*(?:\.\d+)?(?![\d]|\.\d|-\w)"
SPACE = r"[ \u00a0]"
CLAIM = re.compile(rf"(?P<number>{NUMBER})(?P<unit>{SPACE}?%|{SPACE}(?:{UNITS})\b)?")
ANY_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
SOURCE = re.compile(r"\]\((?:references\.md#ref-|https?://)")


class Claim(NamedTuple):
    """A number in prose: as written, with its unit, and the paragraph around it."""

    number: str
    unit: str
    paragraph: str

    def __str__(self) -> str:
        return f"{self.number}{self.unit}"


def paragraphs(markdown: str) -> Iterator[str]:
    """Paragraphs, list items and table rows, without fenced code and comments."""
    text = re.sub(r"^(```|:::).*?^\1", "", markdown, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*>|]|\d+\.) )", text):
        if part.strip():
            yield part


def prose_of(paragraph: str) -> str:
    """What is read: no code spans, no addresses, no list number, formulas as they are."""
    text = re.sub(r"`[^`]*`", " ", paragraph)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"^\s*(?:#+ |>? ?)\d+\. ", "", text)
    return html.unescape(re.sub(r"<[^>]+>", " ", text))


def claims(markdown: str) -> list[Claim]:
    """Every number in prose that has a decimal point, a percent sign or a unit."""
    found = []
    for paragraph in paragraphs(markdown):
        for match in CLAIM.finditer(prose_of(paragraph)):
            number, unit = match["number"].rstrip(","), match["unit"] or ""
            if "." in number or unit:
                found.append(Claim(number, unit, paragraph))
    return found


def asserted(source: str) -> set[float]:
    """Numbers inside the assert statements of a cell."""
    numbers = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert):
            for part in ast.walk(node.test):
                if isinstance(part, ast.Constant) and isinstance(part.value, int | float):
                    numbers.add(float(part.value))
    return numbers


def printed(cell: Any) -> set[float]:
    """Numbers in the text, HTML and drawings that a code cell shows."""
    numbers = set()
    for output in cell.outputs:
        data = output.get("data", {})
        texts = [output.get("text", ""), data.get("text/plain", ""), data.get("text/html", "")]
        texts.append(data.get("image/svg+xml", ""))
        for text in ("".join(t) for t in texts):
            shown = html.unescape(re.sub(r"<[^>]+>", " ", text)) + " ".join(
                re.findall(r'aria-label="([^"]*)"', text)
            )
            numbers |= {float(n.replace(",", "")) for n in ANY_NUMBER.findall(shown)}
    return numbers


def backed(claim: Claim, known: Iterable[float]) -> bool:
    """Whether a source is linked, or a known number rounds to the one that is claimed."""
    if SOURCE.search(claim.paragraph):
        return True
    value, decimals = float(claim.number.replace(",", "")), len(claim.number.partition(".")[2])
    scales = (1, 100) if "%" in claim.unit else (1,)
    return any(round(number * scale, decimals) == value for number in known for scale in scales)


def unbacked(notebook: Any) -> list[Claim]:
    """The claims of a notebook that nothing on its page backs."""
    known: set[float] = set()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            known |= printed(cell) | asserted(cell.source)
    prose = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    return [claim for claim in claims(prose) if not backed(claim, known)]
