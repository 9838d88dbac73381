"""The rules of a chapter's notebook, each a function from a notebook to a list of faults."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

from scripts.notebooks import FIRST_CELL, WIDGET_VIEW
from scripts.pages import QUIZ

ALLOWED_TAGS = {"exercise", "hide-cell", "hide-input", "nbval-ignore-output", "no-live"}
RHYTHM = ("Question", "Failure", "Idea", "Code", "Check", "Exercises", "Interview corner", "Recap")
PICTURE = ("<svg", "<img", "data-explorable")


def cells(notebook: Any, kind: str) -> list[Any]:
    """Cells of one kind."""
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def is_quiz(cell: Any) -> bool:
    """Whether a cell shows the chapter's quiz, which is no step: pacing leaves it out."""
    return cell.cell_type == "code" and QUIZ.search(cell.source) is not None


def paced(notebook: Any) -> list[Any]:
    """Code cells that a reader works through: all but the quiz."""
    return [cell for cell in cells(notebook, "code") if not is_quiz(cell)]


def prose(notebook: Any) -> str:
    """All Markdown of a notebook."""
    return "\n\n".join(cell.source for cell in cells(notebook, "markdown"))


def own_code(notebook: Any) -> list[Any]:
    """Code cells after the first, which is the same everywhere."""
    return paced(notebook)[1:]


def line_count(cell: Any) -> int:
    """Lines of code that are not blank."""
    return sum(1 for line in cell.source.split("\n") if line.strip())


def word_count(markdown: str) -> int:
    """Words of prose: formulas, code and addresses are not read as words."""
    text = re.sub(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`", " ", markdown, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return len(re.findall(r"[^\W\d_][\w’'-]*", text))


def headings(notebook: Any) -> list[tuple[int, str]]:
    """Level and text of every heading."""
    text = re.sub(r"^```.*?^```", "", prose(notebook), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"^(#+) (.+)$", text, flags=re.MULTILINE)
    return [(len(marks), title) for marks, title in found]


def first_cell(notebook: Any) -> list[str]:
    """The first code cell finds (on Colab: installs) the matching package."""
    same = cells(notebook, "code")[0].source == FIRST_CELL
    return [] if same else ["first code cell is not FIRST_CELL of scripts/notebooks.py"]


def number_of_cells(notebook: Any) -> list[str]:
    """Between 12 and 25 code cells, the quiz apart."""
    count = len(paced(notebook))
    return [] if 12 <= count <= 25 else [f"{count} code cells, expected 12 to 25"]


def cell_lengths(notebook: Any) -> list[str]:
    """Half of the cells have at most 6 lines of code, none more than 20 with its blank lines."""
    shown = [len(cell.source.splitlines()) for cell in own_code(notebook)]
    found = [f"a cell of {n} lines, expected at most 20" for n in shown if n > 20]
    median = statistics.median([line_count(cell) for cell in own_code(notebook)])
    return found + ([f"median of {median} lines, expected at most 6"] if median > 6 else [])


def words_per_cell(notebook: Any) -> list[str]:
    """Between 40 and 70 words of prose for each code cell, the quiz apart."""
    ratio = word_count(prose(notebook)) / len(paced(notebook))
    return [] if 40 <= ratio <= 70 else [f"{ratio:.1f} words per code cell, expected 40 to 70"]


def no_magics(notebook: Any) -> list[str]:
    """Plain Python: no line magic, cell magic or shell escape."""
    code = "\n".join(cell.source for cell in cells(notebook, "code"))
    return [f"magic {m!r}" for m in re.findall(r"^\s*[%!]\S*", code, flags=re.MULTILINE)]


def standard_markdown(notebook: Any) -> list[str]:
    """No directive, role or raw HTML, which JupyterLab and Colab would show as they are."""
    text = prose(notebook)
    found = re.findall(r"^:{3,}.*|^`{3,}\{.*|\{[a-z:-]+\}`[^`]*`|^\([\w-]+\)=", text, flags=re.M)
    found += re.findall(r"</?[a-z][^>]*>", re.sub(r"`[^`]*`", "", text))
    return [f"not standard Markdown: {item!r}" for item in found]


def tags(notebook: Any) -> list[str]:
    """Only known tags; an output that may vary has its facts asserted in the same cell."""
    found = []
    for cell in notebook.cells:
        own = set(cell.metadata.get("tags", []))
        found += [f"tag {tag!r} is not allowed" for tag in sorted(own - ALLOWED_TAGS)]
        if "nbval-ignore-output" in own and not re.search(r"^\s*assert ", cell.source, re.M):
            found.append("nbval-ignore-output without an assertion in the cell")
        if "hide-cell" in own and not cell.metadata.get("jupyter", {}).get("source_hidden"):
            found.append("hide-cell without jupyter.source_hidden")
    return found


def outputs(notebook: Any) -> list[str]:
    """Executed top to bottom, without errors, warnings or widget views."""
    code = cells(notebook, "code")
    found = []
    if [cell.execution_count for cell in code] != list(range(1, len(code) + 1)):
        found.append("not executed top to bottom in a fresh kernel")
    if "widgets" in notebook.metadata:
        found.append("widget state is stored")
    for output in (output for cell in code for output in cell.outputs):
        if output.output_type == "error" or output.get("name") == "stderr":
            found.append(f"stored {output.get('ename', 'stderr')} output")
        if WIDGET_VIEW in output.get("data", {}):
            found.append("a widget view is stored")
    return found


def heading_order(notebook: Any) -> list[str]:
    """One title, and no level is skipped."""
    levels = [level for level, _ in headings(notebook)]
    found = [] if levels.count(1) == 1 == levels[0] else ["expected one title, at the top"]
    steps = itertools.pairwise(levels)
    return found + [f"heading level jumps from {a} to {b}" for a, b in steps if b > a + 1]


def rhythm(notebook: Any) -> list[str]:
    """Question, Failure, Idea, Code, Check, Exercises, Interview corner, Recap, in this order."""
    titles = " | ".join(title for level, title in headings(notebook) if level == 2)
    callouts = re.findall(r"^> \*\*([^*]+?)\.\*\*", prose(notebook), flags=re.MULTILINE)
    names = [name for name in RHYTHM if name != "Check"]
    found = [f"no section {name!r}" for name in names if name not in titles]
    places = [titles.find(name) for name in names]
    if not found and places != sorted(places):
        found.append(f"sections out of order: {titles}")
    for name in ("Prediction", "Check", "Interview corner"):
        if name not in callouts and not (name == "Check" and "Check" in titles):
            found.append(f"no callout {name!r}")
    return found


def recap(notebook: Any) -> list[str]:
    """The recap is three lines."""
    text = prose(notebook).partition("## Recap")[2].strip()
    lines = [line for line in text.split("\n") if re.match(r"(-|\d\.) ", line)]
    return [] if len(lines) == 3 else [f"a recap of {len(lines)} lines, expected 3"]


def shown_pictures(notebook: Any) -> int:
    """Figures and explorables among the outputs."""
    return sum(
        "image/png" in output.get("data", {})
        or any(mark in output.get("data", {}).get("text/html", "") for mark in PICTURE)
        for cell in cells(notebook, "code")
        for output in cell.outputs
    )


def pictures(notebook: Any) -> list[str]:
    """Between 3 and 6 figures or explorables."""
    count = shown_pictures(notebook)
    return [] if 3 <= count <= 6 else [f"{count} pictures, expected 3 to 6"]


def exercises(notebook: Any) -> list[str]:
    """Between 2 and 4 exercises, each with a folded solution."""
    count = sum("hide-cell" in cell.metadata.get("tags", []) for cell in notebook.cells)
    return [] if 2 <= count <= 4 else [f"{count} folded solutions, expected 2 to 4"]


def dead_links(notebook: Any, folder: Path) -> list[str]:
    """Relative links lead to a file of the book."""
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", prose(notebook))
    return [
        f"link to {target!r}: no such file"
        for target in targets
        if "://" not in target and not (folder / target).is_file()
    ]


def folds_only(notebook: Any) -> list[str]:
    """Standard Markdown, and folds for hints."""
    text = re.sub(r'</?(details|summary)>|<details data-exercise="\w+">', "", prose(notebook))
    plain = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    return standard_markdown(plain)


# Not a chapter with a thread of its own, but a list of sections that are made by a script.
COLLECTIONS = {"12_exercises"}
COLLECTION_RULES: list[Callable[[Any], list[str]]] = [
    first_cell,
    no_magics,
    folds_only,
    tags,
    outputs,
    heading_order,
]
RULES: list[Callable[[Any], list[str]]] = [
    first_cell,
    number_of_cells,
    cell_lengths,
    words_per_cell,
    no_magics,
    standard_markdown,
    tags,
    outputs,
    heading_order,
    rhythm,
    recap,
    pictures,
    exercises,
]
