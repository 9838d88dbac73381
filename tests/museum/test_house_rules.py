"""The museum is light, small, and nothing right depends on it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import cpcore

PACKAGE = Path(cpcore.__file__).parent
MODULES = sorted((PACKAGE / "museum").glob("*.py"))


def test_importing_the_museum_loads_neither_torch_nor_plotting_nor_widgets() -> None:
    code = "import sys, cpcore.museum; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())
    assert {"cpcore.museum.visit", "numpy"} <= loaded
    assert not loaded & {"torch", "matplotlib", "ipywidgets", "IPython", "traitlets"}


def test_nothing_else_of_the_package_imports_the_museum() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path not in MODULES and path.name != "__main__.py":  # which names every command
            assert "cpcore.museum" not in path.read_text(encoding="utf-8"), path.name


def test_modules_and_functions_are_small() -> None:
    assert len(MODULES) > 8
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 200, path.name
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                first = node.body[1] if ast.get_docstring(node) and node.body[1:] else node.body[0]
                assert (node.end_lineno or 0) - first.lineno < 40, f"{path.name}: {node.name}"
