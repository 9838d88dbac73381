"""The page of licences lists the hosted files of others, all of them and no more."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

from scripts.build import ROOT

# Written by us or from our pages; the page says that these are under the book's own licence.
OURS = (
    "*.html",
    "_sources/*",
    "_images/*",
    "explorables/*",
    "practice/*",
    "pyodide/cpcore.zip",
    "pyodide/manifest.json",
    "page/*",
    "favicon.svg",
    "_static/favicon.svg",
    "objects.inv",
    "searchindex.js",
    ".buildinfo",
)


def listed() -> list[str]:
    """Path patterns of the last column of the table."""
    page = (ROOT / "book" / "licences.md").read_text(encoding="utf-8")
    cells = re.findall(r" \| (`[^|]*) \|$", page, re.MULTILINE)
    return [pattern for cell in cells for pattern in re.findall(r"`([^`]+)`", cell)]


def hosted(site: Path) -> list[str]:
    """Files of the built site that we did not write."""
    every = [p.relative_to(site).as_posix() for p in site.rglob("*") if p.is_file()]
    return [name for name in every if not any(fnmatchcase(name, own) for own in OURS)]


def test_every_hosted_file_of_others_is_listed(site: Path) -> None:
    unlisted = [name for name in hosted(site) if not any(fnmatchcase(name, p) for p in listed())]
    assert not unlisted


def test_every_listed_file_is_hosted(site: Path) -> None:
    names = hosted(site)
    assert len(listed()) > 20
    built = [p for p in listed() if (site / "pyodide").exists() or not p.startswith("pyodide/")]
    absent = [p for p in built if not any(fnmatchcase(name, p) for name in names)]
    assert not absent
