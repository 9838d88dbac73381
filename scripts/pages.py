"""The pages and parts of pages that are computed: sources, reading times, questions, sheet.

`references.md` is written from `references.bib`, the table of chapters on the index from the
chapters themselves, question pages and sheet from `data/interview`, so none can drift. `--check`
writes nothing and fails on a difference.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from pybtex.database import parse_file
from pybtex.richtext import Text

from cpcore.exercises import catalogue as bank
from cpcore.ui import catalogue
from scripts import exercises, question_pages, sheet

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
# Section of the page by the entry's keyword, in the order of the page.
SECTIONS = {
    "paper": "Papers",
    "code": "Libraries and their documentation",
    "standard": "Floating point",
    "further": "Further reading",
}
HEAD = """\
# References

Every outside fact in this book links here. An entry says what the book takes from the source.
Papers are named by their arXiv number. A page that can change has the day on which we read it and,
where it has one, its release or commit. What no source is named for is derived or measured in the
book itself, and tested.
"""
START, END = "<!-- chapters: written by scripts/pages.py -->", "<!-- end of chapters -->"
WORDS_PER_MINUTE = 180
MINUTES_PER_CELL = 0.5  # read it, run it, compare the output with the prediction
MINUTES_PER_EXPLORABLE = 3
MINUTES_PER_EXERCISE = 8
MINUTES_PER_QUIZ = 5  # six to eight questions
QUIZ = re.compile(r'^quiz\("\d\d"\)$', re.MULTILINE)  # as a cell shows one
EXPLORABLES = {name.replace("-", "_") for name in catalogue}  # as a cell's last line shows one


def plain(latex: str) -> str:
    """A field of the bibliography as plain text."""
    return str(Text.from_latex(latex))


def safe(text: str) -> str:
    """Text in which Markdown reads no markup."""
    return re.sub(r"([_*`\[\]])", r"\\\1", text)


def address(fields: Any) -> tuple[str, str]:
    """Name and address of the link of one entry."""
    if "eprint" in fields:
        return f"arXiv:{fields['eprint']}", f"https://arxiv.org/abs/{fields['eprint']}"
    if "doi" in fields:
        return f"doi:{fields['doi']}", f"https://doi.org/{fields['doi']}"
    return re.sub(r"^https?://([^/]+).*", r"\1", fields["url"]), fields["url"]


def entry_text(key: str, entry: Any) -> str:
    """One entry of the page under its anchor."""
    fields = entry.fields
    names = [" ".join(map(plain, p.first_names + p.middle_names + p.last_names)).strip("{}")
             for p in entry.persons["author"]]  # fmt: skip
    authors = ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
    place = [plain(fields[name]) for name in ("journal", "publisher") if name in fields]
    name, url = address(fields)
    parts = [f"*{safe(plain(fields['title']))}*", *map(safe, place), f"[{safe(name)}]({url})"]
    if "version" in fields:
        parts.append(f"read at {safe(plain(fields['version']))}")
    if "urldate" in fields:
        parts.append(f"read on {fields['urldate']}")
    line = f"{safe(authors)} ({fields['year']}). " + ", ".join(parts)
    return f"(ref-{key})=\n{line}.\\\n{safe(plain(fields['annote']))}\n"


def references() -> str:
    """The text of references.md."""
    entries = parse_file(str(BOOK / "references.bib")).entries
    text = HEAD
    for keyword, title in SECTIONS.items():
        chosen = {k: e for k, e in entries.items() if e.fields["keywords"] == keyword}
        text += f"\n## {title}\n"
        for key in sorted(chosen):
            text += "\n" + entry_text(key, chosen[key])
    return text


def counts(notebook: Any) -> dict[str, int]:
    """What a reader has before them: prose words, code cells, explorables, exercises, quizzes."""
    prose = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    code = [c.source for c in notebook.cells if c.cell_type == "code"]
    quizzes = [source for source in code if QUIZ.search(source)]
    last = [source.strip().split("\n")[-1] for source in code]
    return {
        "words": len(prose.split()),
        "cells": len(code) - len(quizzes),
        "explorables": sum(line in EXPLORABLES for line in last),
        "exercises": len(re.findall(r"^\*\*(?:Exercise )?\d+\. ", prose, re.MULTILINE)),
        "quizzes": len(quizzes),
    }


def minutes(found: dict[str, int]) -> tuple[int, int]:
    """Minutes to read a chapter, and to work it through; both in steps of five."""
    read = found["words"] / WORDS_PER_MINUTE + MINUTES_PER_CELL * found["cells"]
    read += MINUTES_PER_EXPLORABLE * found["explorables"]
    work = read + MINUTES_PER_EXERCISE * found["exercises"] + MINUTES_PER_QUIZ * found["quizzes"]
    return 5 * round(read / 5), 5 * round(work / 5)


def chapter_table() -> str:
    """The index's table of finished chapters."""
    rows = ["| chapter | read | with exercises and quiz |", "|---|---|---|"]
    for path in sorted(BOOK.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        title = re.sub(r"^# ", "", notebook.cells[0].source.split("\n")[0])
        own = path == exercises.PATH  # whose exercises name their own minutes
        read, work = minutes(counts(exercises.frame(notebook) if own else notebook))
        work += sum(each.minutes for each in bank.values()) if own else 0
        rows.append(f"| [{title}]({path.name}) | {read} min | {work} min |")
    return "\n".join(rows)


def with_chapters(index: str) -> str:
    """The index with a fresh table between its two marks."""
    before, rest = index.split(START)
    return f"{before}{START}\n\n{chapter_table()}\n\n{END}{rest.split(END)[1]}"


def pages() -> dict[Path, str]:
    """What each computed page should hold."""
    index, practice = BOOK / "index.md", BOOK / "practice.md"
    questions = {BOOK / name: text for name, text in question_pages.level_pages().items()}
    return {
        BOOK / "references.md": references(),
        index: with_chapters(index.read_text(encoding="utf-8")),
        practice: question_pages.practice(practice.read_text(encoding="utf-8")),
        BOOK / "sheet.md": sheet.page(),
        **questions,
    }


def main() -> None:
    """Write the computed pages, or check them."""
    parser = argparse.ArgumentParser(prog="python -m scripts.pages", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check, write nothing")
    args = parser.parse_args()
    stale = []
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
            if not args.check:
                path.write_text(text, encoding="utf-8")
    if args.check and stale:
        sys.exit(f"{', '.join(stale)}: not up to date, run `python -m scripts.pages`")


if __name__ == "__main__":
    main()
