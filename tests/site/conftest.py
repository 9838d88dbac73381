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
    out = tmp_path_factory.mktemp("site") / "html"
    try:
        assets.ensure("katex")
        build.build(build.ROOT, out, build.page_python(build.ROOT))
    except (assets.AssetError, build.BuildError) as error:
        pytest.fail(f"the book does not build:\n{error}", pytrace=False)
    return out


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the built book is served, with a slash at the end."""
    with support.serving(site) as home:
        yield home


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without Chromium, skip the browser tests before anything is built, on CI fail.

    Not in the fixture: from here pytest counts all of them in one line.
    """
    needed = "browser" in getattr(item, "fixturenames", ())
    if needed and support.chromium() is None:
        message = "no Chromium for the browser tests: `apt-get install chromium`, or any on PATH"
        if os.environ.get("CI"):
            pytest.fail(message, pytrace=False)
        pytest.skip(message)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium."""
    path = support.chromium()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=support.FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """Source of axe-core."""
    return (assets.ensure("axe-core") / "axe.min.js").read_text(encoding="utf-8")
