"""One build of the book, and for each process one server and one browser, for all page tests."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from scripts import assets, build
from tests.support import browser as support

BUILD_S = 300  # the longest wait for the process that builds


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book, built once in a scratch folder by the script behind `make html`.

    The first process of the run that needs it builds, others wait for it.
    """
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent  # of all processes of this run
    out, done = shared / "site" / "html", shared / "site" / "done"
    try:
        out.parent.mkdir()
    except FileExistsError:
        _await(done)
    else:
        try:
            _build(out)
        finally:
            done.touch()
    if not out.exists():
        pytest.fail("the book does not build: see the first failure", pytrace=False)
    return out


def _await(done: Path) -> None:
    end = time.monotonic() + BUILD_S
    while not done.exists():
        if time.monotonic() > end:
            pytest.fail(f"the book was not built within {BUILD_S} s", pytrace=False)
        time.sleep(0.2)


def _build(out: Path) -> None:
    try:
        assets.ensure("katex")
        build.build(build.ROOT, out, build.page_python(build.ROOT))
    except (assets.AssetError, build.BuildError) as error:
        pytest.fail(f"the book does not build:\n{error}", pytrace=False)


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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for one file: playwright keeps a loop of events running, which others need."""
    path = support.chromium()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=support.FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """Source of axe-core."""
    return (assets.ensure("axe-core") / "axe.min.js").read_text(encoding="utf-8")
