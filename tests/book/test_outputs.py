"""A stored output that is not what its cell computes makes the notebook run fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat

from scripts import check, notebooks


def run_nbval(notebook: Any, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run nbval on a notebook with the very options of `make test`."""
    path = folder / "copy.ipynb"
    path.write_text(notebooks.stored(notebook), encoding="utf-8")
    options = [option for option in check.PYTEST if option.startswith("--nbval")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(path)]
    return subprocess.run(command, cwd=check.ROOT, capture_output=True, text=True, check=False)


def start_of_chapter(count: int) -> Any:
    """The first code cells of a chapter, with their stored outputs."""
    notebook = nbformat.read(notebooks.paths()[0], as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    notebook.cells = code[:count]
    return notebook


def test_a_changed_stored_output_fails(tmp_path: Path) -> None:
    notebook = start_of_chapter(1)
    output = notebook.cells[0].outputs[0]
    assert output.text == "cpcore 0.1.0\n"
    output.text = "cpcore 0.1.1\n"
    done = run_nbval(notebook, tmp_path)
    assert done.returncode == 1
    assert "1 failed" in done.stdout


def test_an_output_that_is_only_stored_fails(tmp_path: Path) -> None:
    notebook = start_of_chapter(2)
    assert notebook.cells[1].outputs == []
    notebook.cells[1].outputs = [nbformat.v4.new_output("stream", text="never printed\n")]
    done = run_nbval(notebook, tmp_path)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout


def test_the_same_cells_unchanged_pass(tmp_path: Path) -> None:
    done = run_nbval(start_of_chapter(2), tmp_path)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
