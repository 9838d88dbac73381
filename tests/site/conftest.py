"""One build of the book, one server and one browser for all tests of the hosted page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from scripts import assets, build
from tests.support import browser as support


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book, built once in a scratch folder by the script behind `make html`."""
    assets.ensure("katex")
    out = tmp_path_factory.mktemp("site") / "html"
    try:
        build.build(build.ROOT, out)
    except build.BuildError as error:
        pytest.fail(f"the book does not build:\n{error}", pytrace=False)
    return out


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the built book is served, with a slash at the end."""
    with support.serving(site) as home:
        yield home


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; without one the tests skip, on CI they fail."""
    path = support.chromium()
    if path is None:
        message = "no Chromium for the browser tests: `apt-get install chromium`, or any on PATH"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=support.FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """Source of axe-core."""
    return (assets.ensure("axe-core") / "axe.min.js").read_text(encoding="utf-8")
