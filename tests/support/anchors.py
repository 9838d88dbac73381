"""Anchors of a page of the book, as links between pages name them."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import yaml
from myst_parser.mdit_to_docutils.base import default_slugify

from scripts.build import ROOT

LEVELS = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"][
    "myst_heading_anchors"
]


def markdown(page: Path) -> str:
    """What is written on a page, without its code."""
    if page.suffix == ".md":
        return page.read_text(encoding="utf-8")
    cells = nbformat.read(page, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def anchors(page: Path) -> set[str]:
    """Slugs of its headings, the second of a name with -1, and its explicit targets."""
    text = re.sub(r"^(```|:::).*?^\1", "", markdown(page), flags=re.DOTALL | re.MULTILINE)
    found: set[str] = set()
    for title in re.findall(rf"^#{{1,{LEVELS}}} (.+)$", text, flags=re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", title.strip())
        slug, count = default_slugify(words), 1
        while slug in found:
            slug, count = f"{slug}-{count}", count + 1
        found.add(slug)
    return found | set(re.findall(r"^\(([\w-]+)\)=$", text, flags=re.MULTILINE))
