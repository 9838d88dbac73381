"""Which pages of a build get Run buttons: notebooks, and only with Python for the page."""

from __future__ import annotations

import importlib.util
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from scripts.pages import ROOT

RUNNER = ["runner-output.js", "runner-editor.js", "runner-python.js", "runner.js"]


class App:
    """The part of Sphinx that the extension talks to."""

    def __init__(self, file: str) -> None:
        self.scripts: list[tuple[str, str]] = []
        self.env = SimpleNamespace(doc2path=lambda name: file)

    def add_js_file(self, name: str, **options: Any) -> None:
        if "data-live" in options:  # the others are there without Python too
            self.scripts.append((name, options["data-live"]))

    def add_css_file(self, name: str, **options: Any) -> None:
        pass


@pytest.fixture(scope="module")
def extension() -> Any:
    """Our Sphinx extension, which lies outside of every package."""
    folder = ROOT / "book/_ext"
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("cpbook", folder / "cpbook.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


@pytest.mark.parametrize(
    ("file", "live", "scripts"),
    [
        ("book/02_x.ipynb", "abc", RUNNER),
        ("book/02_x.ipynb", "", []),
        ("book/index.md", "abc", []),
    ],
)
def test_run_buttons_come_with_a_notebook_and_hosted_python(
    extension: Any, monkeypatch: pytest.MonkeyPatch, file: str, live: str, scripts: list[str]
) -> None:
    monkeypatch.setenv("CPCORE_LIVE", live)
    app = App(file)
    extension.add_to_notebooks(app, "page", "page.html", {}, object())
    assert app.scripts == [(f"../page/{name}", live) for name in scripts]
    assert all((ROOT / "book/assets/page" / name).is_file() for name in scripts)
