"""Writes the chapter of exercises from the bank of `cpcore.exercises`.

Text, hints, starters and solutions stand in the package once; the notebook cannot drift from them.
It is executed by `scripts.notebooks`. `--check` writes nothing and fails on a difference.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from typing import Any

import nbformat

from cpcore.exercises import catalogue, specification, starter
from cpcore.exercises.exercise import Exercise
from cpcore.exercises.sources import model_source
from scripts import notebooks

PATH = notebooks.BOOK / "12_exercises.ipynb"
TEXT = notebooks.BOOK / "data" / "exercises_chapter.md"
CAPSTONE = "causal_ring"
TAG = "exercise"  # the page runs such a cell without the exercises before it
ORDINALS = ("One hint", "A second hint", "The last hint")


def quoted(text: str) -> str:
    """Plain text as Markdown: names with an underscore, calls and powers in code type."""
    found = re.compile(r"\w+(?:_\w+)+(?:\[[^\]]*\])?|\b[a-z]+\([a-z]+, [a-z]+\)|\w+\*\*\d+")
    parts = text.split("`")
    parts[::2] = [found.sub(r"`\g<0>`", part) for part in parts[::2]]
    return "`".join(parts)


def brief(name: str) -> str:
    """The starter with a docstring of one line; the text above the cell says the rest."""
    source = starter(name).rstrip("\n")
    lines = source.split("\n")
    for node in ast.parse(source).body:
        text = node.body[0] if isinstance(node, ast.FunctionDef) and node.name == name else None
        if text is not None and text.end_lineno != text.lineno:
            lines[text.lineno - 1] += '"""'
            del lines[text.lineno : text.end_lineno]
    return "\n".join(lines)


def folded(summary: str, text: str, attributes: str = "") -> str:
    """A fold in standard Markdown and two elements that every notebook viewer knows."""
    return f"<details{attributes}>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def solution_code(exercise: Exercise) -> str:
    """The solution without its docstring, and what the judge says of it."""
    source = model_source(exercise.name)
    lines = source.rstrip("\n").split("\n")
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
            text = node.body[0]
            for number in range(text.lineno - 1, text.end_lineno or text.lineno):
                lines[number] = "\0"
    code = "\n".join(line for line in lines if line != "\0")
    return f"{code}\n\n\nprint(exercises.judge({exercise.name}).head())"


def heading(number: int, exercise: Exercise) -> str:
    """Title, level, time and the chapter that it practices."""
    title = exercise.title if exercise.name == CAPSTONE else f"{number}. {exercise.title}"
    chapter = f"[chapter {int(exercise.chapter[:2])}]({exercise.chapter})"
    facts = f"*{exercise.level.capitalize()}, {exercise.minutes} minutes, after {chapter}.*"
    return f"## {title}\n\n{facts}"


def cells_of(number: int, exercise: Exercise, texts: dict[str, str]) -> list[Any]:
    """Specification and hints, starter, Run, Submit, folded solution."""
    name = exercise.name
    words = " ".join(specification(name).split())
    parts = [heading(number, exercise)]
    if name == CAPSTONE:
        parts.append(texts["capstone"])
    parts.append(f"`{name}`: {quoted(words)}")
    for summary, hint in zip(ORDINALS, exercise.hints, strict=True):
        parts.append(folded(summary, quoted(hint), f' data-exercise="{name}"'))
    if exercise.commentary:
        rows = [f"| {minute} | {said} |" for minute, said in exercise.commentary]
        table = "\n".join(["| minute | say |", "|---|---|", *rows])
        parts.append(folded("What an interviewer wants to hear, minute by minute", table))
    made = [nbformat.v4.new_markdown_cell("\n\n".join(parts))]
    code = (
        brief(name),
        f'exercises.run("{name}", {name})',
        f'exercises.submit("{name}", {name})',
    )
    made += [tagged(text, TAG) for text in code]
    return [*made, tagged(solution_code(exercise), TAG, "hide-cell")]


def tagged(source: str, *tags: str) -> Any:
    """A code cell with tags."""
    return nbformat.v4.new_code_cell(source, metadata={"tags": sorted(tags)})


def texts_of(source: str) -> dict[str, str]:
    """The parts of the text file, each under a line `=== name`."""
    parts = re.split(r"^=== (\w+)\n", source, flags=re.MULTILINE)[1:]
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def chapter_map() -> str:
    """A table of all exercises with links to their sections."""
    rows = ["| exercise | level | minutes | chapter |", "|---|---|---|---|"]
    for number, each in enumerate(catalogue.values(), 1):
        title = each.title if each.name == CAPSTONE else f"{number}. {each.title}"
        slug = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        chapter = f"[{int(each.chapter[:2])}]({each.chapter})"
        rows.append(f"| [{title}](#{slug}) | {each.level} | {each.minutes} | {chapter} |")
    return "\n".join(rows)


def notebook() -> Any:
    """The whole chapter, not yet executed."""
    texts = texts_of(TEXT.read_text(encoding="utf-8"))
    made = [
        nbformat.v4.new_markdown_cell(texts["opening"]),
        nbformat.v4.new_code_cell(notebooks.FIRST_CELL),
        nbformat.v4.new_code_cell(texts["setup"]),
        nbformat.v4.new_markdown_cell(f"{texts['map']}\n\n{chapter_map()}"),
        nbformat.v4.new_markdown_cell(texts["trust"]),
        nbformat.v4.new_code_cell(texts["count"]),
    ]
    for number, exercise in enumerate(catalogue.values(), 1):
        made += cells_of(number, exercise, texts)
    made.append(nbformat.v4.new_markdown_cell(texts["closing"]))
    new = nbformat.v4.new_notebook(cells=made)
    notebooks.normalize(new)
    return new


def frame(book: Any) -> Any:
    """What is read before, between and after the exercises."""
    cells = [
        cell
        for cell in book.cells
        if TAG not in cell.metadata.get("tags", []) and "<details data-exercise" not in cell.source
    ]
    return nbformat.v4.new_notebook(cells=cells)


def sources(book: Any) -> list[tuple[str, str, list[str]]]:
    """What a reader sees before anything has run."""
    return [(c.cell_type, c.source, c.metadata.get("tags", [])) for c in book.cells]


def stale() -> bool:
    """Whether the stored chapter differs from what the bank gives."""
    if not PATH.exists():
        return True
    return sources(nbformat.read(PATH, as_version=4)) != sources(notebook())


def main() -> None:
    """Write the chapter if it has changed, or check it."""
    parser = argparse.ArgumentParser(prog="python -m scripts.exercises", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check, write nothing")
    args = parser.parse_args()
    if not stale():
        return
    if args.check:
        sys.exit(f"{PATH.name}: not up to date, run `python -m scripts.exercises`")
    PATH.write_text(notebooks.stored(notebook()), encoding="utf-8")
    print(f"{PATH.name}: written, now run `make notebooks`")


if __name__ == "__main__":
    main()
