"""A reader at the live cells of a page: run, edit, read what is shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import yaml
from playwright.sync_api import Locator, Page

from tests.support.browser import Record

ROOT = Path(__file__).resolve().parents[2]
BOOT_MS = 60_000  # a loaded machine starts Python slowly; benchmarks/first_result.py measures
SETTLED = r"^(Ran in|Ended with|Stopped|Python ended|Cell \d+, which|Python needs)"


def notebooks() -> list[str]:
    """The notebooks of the table of contents, as page names below the site."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    names = re.findall(r"'file': '([^']+)'", str(toc))
    return [name for name in names if (ROOT / f"{name}.ipynb").is_file()]


def code_cells(name: str) -> list[Any]:
    """Code cells of a notebook; the n-th is cell n of the page."""
    notebook = nbformat.read(ROOT / f"{name}.ipynb", as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell: Any) -> set[str]:
    """Tags of a notebook's cell."""
    return set(cell.metadata.get("tags", []))


class Desk:
    """The live cells of one page, by their number."""

    def __init__(self, page: Page, seen: Record | None = None) -> None:
        self.page = page
        self.seen = seen or Record("")

    def cell(self, number: int) -> Locator:
        """The cell as a whole."""
        return self.page.locator("div.cell").nth(number - 1)

    def button(self, text: str, number: int) -> Locator:
        """A button under a cell."""
        name = f"Stop Python, cell {number}" if text == "Stop" else f"{text} cell {number}"
        # Within the cell: the names of all buttons of a long page take longer than the test.
        return self.cell(number).get_by_role("button", name=name, exact=True)

    def note(self, number: int) -> Locator:
        """What the cell says beside its buttons."""
        return self.cell(number).locator(".cp-run-note")

    def press(self, text: str, number: int) -> None:
        """Press a button, after opening the fold that holds it."""
        self.cell(number).evaluate("e => { for (const d of e.querySelectorAll('details')) "
                                   "if (d.querySelector('.cp-run')) d.open = true; }")  # fmt: skip
        self.button(text, number).click()

    def settled(self, number: int, timeout: float = BOOT_MS) -> str:
        """Wait until the cell has ended, one way or another; what it says then."""
        self.page.wait_for_function(
            "([e, pattern]) => new RegExp(pattern).test(e.textContent)",
            arg=[self.note(number).element_handle(), SETTLED],
            timeout=timeout,
        )
        return self.note(number).text_content() or ""

    def run(self, number: int, timeout: float = BOOT_MS) -> str:
        """Run a cell to its end; what its note says then."""
        # The note of an earlier run must not be taken for that of this one.
        self.note(number).evaluate("e => { e.textContent = ''; }")
        self.press("Run", number)
        return self.settled(number, timeout)

    def edit(self, number: int, code: str) -> None:
        """Replace the code of a cell."""
        self.field(number).fill(code)

    def field(self, number: int) -> Locator:
        """The text field of a cell, opened if need be."""
        field = self.cell(number).locator("textarea")
        if not field.count():
            self.press("Edit", number)
        return field

    def outputs(self, number: int) -> Locator:
        """The outputs that the cell shows."""
        return self.cell(number).locator(".cell_output > .output")

    def text(self, number: int) -> str:
        """The printed text that a cell shows, streams and results and errors."""
        return "".join(self.outputs(number).locator("pre").all_text_contents())

    def try_out(self, number: int, code: str) -> str:
        """Put code into a cell, run it and read its text."""
        self.edit(number, code)
        self.run(number)
        return self.text(number)
