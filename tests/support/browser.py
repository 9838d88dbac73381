"""A visit to a page in Chromium, with everything that the page asked for and complained about."""

from __future__ import annotations

import gzip
import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, Request, Response

from scripts import serve

NAMES = (
    "chromium-headless-shell",  # draws the same, in less time
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Nothing but this machine has an address: what a page asks of others fails, and is noted.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
# The theme's own two notes; anything else in the console is a fault.
ALLOWED_CONSOLE = ("[PST]", "[togglebutton]")
FONTS = (".woff2", ".woff", ".ttf")
WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")


def chromium() -> str | None:
    """Path of a Chromium on this machine."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Record:
    """What one context saw: requests that left the site, console lines, page errors, weights."""

    home: str
    outside: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)

    def clear(self) -> None:
        """Forget what was seen so far."""
        for seen in (self.outside, self.complaints, self.responses):
            seen.clear()

    def weight(self) -> tuple[int, int]:
        """Bytes of all responses, plain and gzipped, without fonts and pictures of explorables.

        Those pictures have a budget of their own, which tests/ui checks for each explorable.
        """
        urls = [response.url for response in self.responses if response.url.startswith(self.home)]
        paths = [(urlsplit(url).path, url) for url in urls]
        counted = [url for p, url in paths if not p.endswith(FONTS) and "/explorables/" not in p]
        sizes = [sizes_of(url) for url in counted]
        return sum(plain for plain, _ in sizes), sum(packed for _, packed in sizes)


@cache
def sizes_of(url: str) -> tuple[int, int]:
    """Bytes of a file of the site, plain and gzipped; pages share most of theirs."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            body = answer.read()
    except urllib.error.HTTPError as error:
        body = error.read()
    return len(body), len(gzip.compress(body, 6))


def record(context: BrowserContext, home: str) -> Record:
    """Watch a context: requests to another host are noted; FLAGS let none of them through.

    They are not intercepted: that costs as much as all the rest of a visit.
    """
    seen = Record(home)

    def asked(request: Request) -> None:
        if not request.url.startswith((home, "data:", "blob:")):
            seen.outside.append(request.url)

    def failed(request: Request) -> None:
        if request.failure == "csp" and request.url in seen.outside:
            seen.outside.remove(request.url)  # the page's own policy: it never left the browser

    def note(kind: str, text: str) -> None:
        if not text.startswith(ALLOWED_CONSOLE) and kind in ("warning", "error"):
            seen.complaints.append(f"console {kind}: {text}")

    context.on("request", asked)
    context.on("requestfailed", failed)
    context.on("console", lambda message: note(message.type, message.text))
    context.on("weberror", lambda error: seen.complaints.append(f"page error: {error.error}"))
    context.on("response", lambda response: seen.responses.append(response))
    return seen


@contextmanager
def visiting(browser: Browser, home: str, **options: Any) -> Iterator[tuple[Page, Record]]:
    """A fresh page whose context is watched; `options` go to the browser context."""
    context = browser.new_context(**options)
    try:
        seen = record(context, home)
        page = context.new_page()
        page.set_default_timeout(10_000)
        yield page, seen
    finally:
        context.close()


@contextmanager
def returning(browser: Browser, home: str, folder: Path) -> Iterator[tuple[BrowserContext, Record]]:
    """A reader who goes on from page to page: `folder` holds what the browser keeps.

    A fresh context keeps nothing of a visit, not even what it has compiled.
    """
    context = browser.browser_type.launch_persistent_context(
        folder, executable_path=chromium(), args=FLAGS
    )
    try:
        context.set_default_timeout(10_000)
        yield context, record(context, home)
    finally:
        context.close()


class Bare(serve.Handler):
    """Sends none of the site's headers: what they forbid reaches the checks, or a page's policy."""

    site_headers: ClassVar[dict[str, str]] = {}


@contextmanager
def serving(site: Path, handler: type[serve.Handler] = serve.Handler) -> Iterator[str]:
    """The address of a folder served on a free localhost port."""
    server = serve.open_server(site, range(1), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def scrolls_sideways(page: Page) -> list[str]:
    """The widest elements if the page is wider than its window, else nothing."""
    script = """() => {
      const width = document.documentElement.clientWidth;
      if (document.documentElement.scrollWidth <= width) return [];
      return [...document.querySelectorAll("main *")]
        .filter(e => e.getBoundingClientRect().right > width + 1).slice(0, 3)
        .map(e => e.tagName + "." + e.className);
    }"""
    wide: list[str] = page.evaluate(script)
    overflow = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return [f"{overflow} px too wide: {wide}"] if overflow > 0 else []
