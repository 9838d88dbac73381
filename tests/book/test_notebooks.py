"""Every notebook keeps the rules of a chapter, and every rule notices a notebook that does not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from scripts import notebooks
from tests.support import chapters

PATHS = notebooks.paths()
Change = Callable[[Any], object]


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def code(notebook: Any) -> Any:
    """A code cell that is not the first."""
    return chapters.own_code(notebook)[0]


def add_prose(notebook: Any, text: str) -> None:
    notebook.cells.append(nbformat.v4.new_markdown_cell(text))


def replace_prose(notebook: Any, old: str, new: str) -> None:
    for cell in chapters.cells(notebook, "markdown"):
        cell.source = cell.source.replace(old, new)


def drop_outputs(notebook: Any) -> None:
    for cell in chapters.cells(notebook, "code"):
        cell.outputs = []


def drop_tags(notebook: Any) -> None:
    for cell in notebook.cells:
        cell.metadata.pop("tags", None)


BROKEN: list[tuple[Callable[[Any], list[str]], Change]] = [
    (chapters.first_cell, lambda n: chapters.cells(n, "code")[0].update(source="import cpcore")),
    (chapters.number_of_cells, lambda n: n.update(cells=n.cells[:8])),
    (chapters.cell_lengths, lambda n: code(n).update(source="x = 1\n" * 21)),
    (chapters.words_per_cell, lambda n: add_prose(n, "word " * 2000)),
    (chapters.no_magics, lambda n: code(n).update(source="%matplotlib inline")),
    (chapters.no_magics, lambda n: code(n).update(source="!ls")),
    (chapters.standard_markdown, lambda n: add_prose(n, "```{note}\nx\n```")),
    (chapters.standard_markdown, lambda n: add_prose(n, "see {cite}`liu2023`")),
    (chapters.standard_markdown, lambda n: add_prose(n, "<b>loud</b>")),
    (chapters.tags, lambda n: code(n).metadata.update(tags=["raises-exception"])),
    (chapters.tags, lambda n: code(n).update(source="1", metadata={"tags": ["hide-cell"]})),
    (
        chapters.tags,
        lambda n: code(n).update(source="1", metadata={"tags": ["nbval-ignore-output"]}),
    ),
    (chapters.outputs, lambda n: code(n).update(execution_count=None)),
    (chapters.outputs, lambda n: n.metadata.update(widgets={})),
    (
        chapters.outputs,
        lambda n: code(n).update(outputs=[nbformat.v4.new_output("error", ename="E", evalue="")]),
    ),
    (
        chapters.outputs,
        lambda n: code(n).update(
            outputs=[nbformat.v4.new_output("display_data", {notebooks.WIDGET_VIEW: {}})]
        ),
    ),
    (chapters.heading_order, lambda n: add_prose(n, "# Again a title")),
    (chapters.heading_order, lambda n: add_prose(n, "#### Deep")),
    (chapters.rhythm, lambda n: replace_prose(n, "## Idea", "## Thought")),
    (chapters.rhythm, lambda n: replace_prose(n, "> **Prediction.**", "> **Guess.**")),
    (chapters.recap, lambda n: add_prose(n, "- one more point")),
    (chapters.pictures, drop_outputs),
    (chapters.exercises, drop_tags),
]


def rules(path: Path) -> list[Callable[[Any], list[str]]]:
    return chapters.COLLECTION_RULES if path.stem in chapters.COLLECTIONS else chapters.RULES


@pytest.mark.parametrize(
    ("path", "rule"),
    [pytest.param(p, r, id=f"{p.stem}-{r.__name__}") for p in PATHS for r in rules(p)],
)
def test_a_chapter_keeps_the_rule(path: Path, rule: Callable[[Any], list[str]]) -> None:
    assert rule(read(path)) == []


@pytest.mark.parametrize(("rule", "change"), BROKEN)
def test_a_rule_notices_a_chapter_that_breaks_it(
    rule: Callable[[Any], list[str]], change: Change
) -> None:
    notebook = read(PATHS[0])
    assert rule(notebook) == []
    change(notebook)
    assert rule(notebook)


def test_a_list_of_exercises_may_fold_and_do_nothing_else() -> None:
    notebook = nbformat.v4.new_notebook()
    add_prose(notebook, "<details>\n<summary>One hint</summary>\n\nText.\n\n</details>")
    assert chapters.folds_only(notebook) == []
    add_prose(notebook, "<b>loud</b>")
    assert chapters.folds_only(notebook)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_links_of_a_chapter_lead_to_files(path: Path) -> None:
    assert chapters.dead_links(read(path), path.parent) == []


def test_a_dead_link_of_a_notebook_is_noticed(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook()
    add_prose(notebook, "[gone](gone.ipynb#x) [web](https://example.org)")
    assert chapters.dead_links(notebook, tmp_path) == ["link to 'gone.ipynb': no such file"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_stored_notebook_is_in_normal_form(path: Path) -> None:
    assert notebooks.problems(path) == []


def test_timing_and_kernel_noise_is_not_normal_form(tmp_path: Path) -> None:
    notebook = read(PATHS[0])
    code(notebook).metadata["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00Z"}
    path = tmp_path / "noisy.ipynb"
    path.write_text(notebooks.stored(notebook), encoding="utf-8")
    assert notebooks.problems(path) == ["noisy.ipynb: not in normal form, run `make notebooks`"]


def test_normal_form_is_a_fixed_point() -> None:
    notebook = read(PATHS[0])
    before = copy.deepcopy(notebook)
    notebooks.normalize(notebook)
    assert notebooks.stored(notebook) == notebooks.stored(before)


def test_pieces_of_one_stream_are_joined() -> None:
    new = nbformat.v4.new_output
    pieces = [new("stream", text="a\n"), new("stream", text="b\n")]
    pieces += [new("stream", name="stderr", text="c\n")]
    joined = notebooks.merged_streams(pieces)
    assert [(o.name, o.text) for o in joined] == [("stdout", "a\nb\n"), ("stderr", "c\n")]
