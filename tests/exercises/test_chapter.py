"""Chapter 12 is made from the bank, and its folds and cells are those of the exercises."""

import re
from typing import Any

import nbformat
import pytest

from cpcore.exercises import catalogue
from scripts import exercises

CHAPTER = nbformat.read(exercises.PATH, as_version=4)


def test_the_chapter_is_written_from_the_bank() -> None:
    assert not exercises.stale(), "run `python -m scripts.exercises`, then `make notebooks`"


def test_a_changed_cell_makes_the_chapter_stale() -> None:
    other = exercises.notebook()
    assert exercises.sources(other) == exercises.sources(CHAPTER)
    other.cells[9].source += "\nx = 1"
    assert exercises.sources(other) != exercises.sources(CHAPTER)


def section(name: str) -> list[Any]:
    """The cells of one exercise: its text, then its code."""
    start = next(i for i, c in enumerate(CHAPTER.cells) if f'data-exercise="{name}"' in c.source)
    return CHAPTER.cells[start : start + 5]


@pytest.mark.parametrize("name", catalogue)
def test_every_exercise_has_a_text_a_starter_run_submit_and_a_folded_solution(name: str) -> None:
    text, start, run, submit, solved = section(name)
    assert text.source.count(f'<details data-exercise="{name}">') == 3
    assert "raise NotImplementedError" in start.source
    assert run.source == f'exercises.run("{name}", {name})'
    assert submit.source == f'exercises.submit("{name}", {name})'
    assert "hide-cell" in solved.metadata.tags
    assert solved.outputs[0].text.startswith(f"{name}: accepted, ")
    for cell in (start, run, submit, solved):
        assert "exercise" in cell.metadata.tags
    assert "not written yet" in submit.outputs[0].data["text/plain"]


def test_the_map_links_to_every_section() -> None:
    rows = re.findall(r"^\| \[([^]]+)\]\(#([^)]+)\) \|", exercises.chapter_map(), re.MULTILINE)
    titles = [c.source.split("\n")[0].removeprefix("## ") for c in CHAPTER.cells
              if "data-exercise" in c.source]  # fmt: skip
    assert [title for title, _ in rows] == titles
    assert len(rows) == len(catalogue)


def test_names_of_the_code_are_set_in_code_type() -> None:
    assert exercises.quoted("use out_a and 2**32") == "use `out_a` and `2**32`"
    assert exercises.quoted("`a = key_chunk` stays") == "`a = key_chunk` stays"
