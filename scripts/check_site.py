"""Read a built site offline and list what is wrong with it.

The build fails on any finding. What needs a browser (console, contrast, scrolling, requests that
scripts make) is checked by the tests in `tests/site`.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scripts.site_page import read_page
from scripts.site_policy import policy_faults

MAX_PAGE_BYTES = 1_200_000
MAX_PAGE_GZIP_BYTES = 350_000
FONTS = {".woff", ".woff2", ".ttf"}
FORBIDDEN = {"thebe": "sphinx-thebe", "require.js": "require.js", "mathjax": "MathJax"}
FORBIDDEN |= {"html-manager": "the widget manager", "fontawesome.js": "the icon script"}


def is_outside(url: str) -> bool:
    """True for an address on another host."""
    parts = urlsplit(url.strip())
    return bool(parts.netloc) or parts.scheme not in ("", "data", "javascript", "mailto", "blob")


def css_urls(css: str) -> list[str]:
    """Every address that a style sheet loads."""
    found = re.findall(r"url\(\s*['\"]?([^'\")]+)", css)
    return found + re.findall(r"@import\s+['\"]([^'\"]+)", css)


class Site:
    """A built site with its pages parsed."""

    def __init__(self, out: Path) -> None:
        self.out = out.resolve()
        self.texts = {p: p.read_text(encoding="utf-8") for p in sorted(self.out.rglob("*.html"))}
        self.pages = {path: read_page(text) for path, text in self.texts.items()}

    def name(self, path: Path) -> str:
        """A page's name in messages."""
        return path.relative_to(self.out).as_posix()

    def target(self, page: Path, url: str) -> Path:
        """The file that a relative address on a page leads to."""
        path = unquote(urlsplit(url).path)
        base = self.out if path.startswith("/") else page.parent
        found = (base / path.lstrip("/")).resolve() if path else page
        return found / "index.html" if found.is_dir() else found

    def dead_links(self, path: Path) -> list[str]:
        """Addresses on a page that lead out of the site's folder, to no file or to no anchor."""
        page = self.pages[path]
        found = [f"base address {url}: moves every link" for url in page.bases]
        urls = page.links + page.loads + [url for css in page.styles for url in css_urls(css)]
        for url in sorted(set(urls)):
            if is_outside(url) or urlsplit(url).scheme or not url:
                continue
            target = self.target(path, url)
            anchor = unquote(urlsplit(url).fragment)
            if not target.is_relative_to(self.out):
                found.append(f"dead link {url}: leaves the site")
            elif not target.is_file():
                found.append(f"dead link {url}")
            elif anchor and target in self.pages and anchor not in self.pages[target].ids:
                found.append(f"dead link {url}: no such anchor")
        return found

    def outside_loads(self, path: Path) -> list[str]:
        """Addresses on other hosts that opening the page would fetch."""
        page = self.pages[path]
        urls = page.loads + [url for css in page.styles for url in css_urls(css)]
        return [f"outside request {url}" for url in sorted(set(urls)) if is_outside(url)]

    def formulas(self, path: Path) -> list[str]:
        """Formulas that were not rendered, or rendered as an error."""
        found = []
        if "katex-error" in self.texts[path] or "#cc0000" in self.texts[path]:
            found.append("broken formula (KaTeX error)")
        text = "".join(self.pages[path].text)
        for match in re.finditer(r"\$\$|\\\(|\\\[|\$[^\s$][^$\n]*[\\^_][^$\n]*\$", text):
            found.append(f"unrendered formula near {text[match.start() :][:40]!r}")
        return found

    def content(self, path: Path) -> list[str]:
        """Leftover scripts, repeated ids and images without a text."""
        page = self.pages[path]
        code = " ".join(page.scripts).lower()
        found = [f"leftover script of {what}" for key, what in FORBIDDEN.items() if key in code]
        found += [f"id {key!r} used {n} times" for key, n in Counter(page.ids).items() if n > 1]
        return found + [f"image without alt: {src}" for src in page.bare_images]

    def policy(self, path: Path) -> list[str]:
        """What the page's content policy allows or blocks and should not."""
        return policy_faults(self.texts[path])

    def weight(self, path: Path) -> tuple[int, int]:
        """Bytes, plain and gzipped, that opening a page loads, fonts apart."""
        files = {path} | {self.target(path, url.split("?")[0]) for url in self.pages[path].loads}
        files = {f for f in files if f.is_file() and f.suffix not in FONTS}
        contents = [file.read_bytes() for file in files]
        return sum(map(len, contents)), sum(len(gzip.compress(c, 6)) for c in contents)

    def budget(self, path: Path) -> list[str]:
        """What a page weighs beyond its budget."""
        plain, packed = self.weight(path)
        found = []
        if plain > MAX_PAGE_BYTES:
            found.append(f"weighs {plain:,} bytes, budget {MAX_PAGE_BYTES:,}")
        if packed > MAX_PAGE_GZIP_BYTES:
            found.append(f"weighs {packed:,} bytes gzipped, budget {MAX_PAGE_GZIP_BYTES:,}")
        return found

    def style_sheets(self) -> list[str]:
        """Addresses on other hosts, and missing files, in the style sheets."""
        found = []
        for css in sorted(self.out.rglob("*.css")):
            for url in css_urls(css.read_text(encoding="utf-8")):
                if is_outside(url):
                    found.append(f"{self.name(css)}: outside request {url}")
                    continue
                target = self.target(css, url)
                if not urlsplit(url).scheme and not (
                    target.is_relative_to(self.out) and target.is_file()
                ):
                    found.append(f"{self.name(css)}: missing file {url}")
        return found


def check_site(out: Path) -> list[str]:
    """Everything wrong with the built site in `out`, a line per finding; empty if clean."""
    site = Site(out)
    if not site.pages:
        return [f"{out}: no page was built"]
    checks = [site.dead_links, site.outside_loads, site.formulas, site.content, site.policy]
    checks.append(site.budget)
    found = [
        f"{site.name(path)}: {problem}"
        for path in site.pages
        for check in checks
        for problem in check(path)
    ]
    return found + site.style_sheets()


def main() -> None:
    """Check the site named on the command line."""
    found = check_site(Path(sys.argv[1] if len(sys.argv) > 1 else "_build/html"))
    sys.exit("\n".join(found) if found else 0)


if __name__ == "__main__":
    main()
