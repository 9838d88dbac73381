"""What happens to the theme's pages after they are written, and the two pages that use no theme."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

# The theme's icon script (1.4 MB; the icon fonts suffice) and sphinx-thebe, which throws.
NEEDLESS = [
    r"\s*<!-- So that users can add custom icons -->\s*"
    r"<script[^>]*fontawesome\.js[^>]*></script>",
    r"\s*<script>const THEBE_JS_URL.*?</script>",
    r"\s*<script[^>]*sphinx-thebe\.js[^>]*></script>",
    r"\s*<link[^>]*sphinx-thebe\.css[^>]*/>",
    r"\s*<script type=\"text/x-thebe-config\">.*?</script>",
    r"\s*<script>kernelName = '[^']*'</script>",
]
# The whole index and what searches it, for results while one types, which this book does not show.
# (With them goes the script that would mark the words found; they keep it from doing so.)
SEARCH_ONLY = re.compile(
    r"\s*<script[^>]*\b(?:searchtools|language_data|searchindex|sphinx_highlight)\.js[^>]*></script>"
)
# The second source of each icon font, for browsers of before 2016.
OLDER_FONT = re.compile(r",\s*url\([^)]*\.ttf[^)]*\)\s*format\([^)]*\)")
UNUSED_FILES = [
    "_static/scripts/fontawesome.js*",
    "_static/**/*.map",
    "_static/vendor/fontawesome/webfonts/*.ttf",
    "_static/sphinx-thebe.*",
    "_static/locales",
    "_static/*webpack-macros.html",
]


# What is wider than a phone scrolls in its own box, which the keyboard must reach. Of code boxes
# and tables, the theme's script leaves that to the ones that are too wide.
SCROLLING = [
    '<div class="pst-scrollable-table-container"',
    '<span class="katex-display"',
    "<pre",
]
# The theme's handlers inside HTML, which the content policy forbids: page.js does the same.
HANDLERS = {
    'onclick="toggleFullScreen()"': 'data-cp-action="full-screen"',
    'onclick="window.print()"': 'data-cp-action="print"',
}
# The page of the book's own name.
REPEATED_TITLE = re.compile(r"<title>([^<]+) (?:—|&#8212;) \1</title>")


def clean_page(text: str) -> str:
    """One page without the scripts that this book never uses."""
    for pattern in NEEDLESS:
        text = re.sub(pattern, "", text, flags=re.DOTALL)
    text = re.sub(r'<dt class="sig [^>]*>.*?</dt>', plain_signature, text, flags=re.DOTALL)
    for box in SCROLLING:
        text = text.replace(f"{box}>", f'{box} tabindex="0">')
    # The theme's own first script turns this into the reader's choice; without scripts it stays,
    # and "auto" would mean the colors of neither.
    text = text.replace('data-theme="auto">', 'data-theme="light">', 1)
    for handler, action in HANDLERS.items():
        text = text.replace(f"<button {handler}", f"<button {action}")
    return REPEATED_TITLE.sub(r"<title>\1</title>", text)


def plain_signature(match: re.Match[str]) -> str:
    """A signature of several lines without Sphinx's list markup, which is invalid in a term."""
    text = match[0].replace("<dl>", '<span class="cp-params">').replace("</dl>", "</span>")
    return text.replace("<dd>", '<span class="cp-param">').replace("</dd>", "</span>")


def clean(out: Path) -> None:
    """Clean every page and style sheet, and remove the files that nothing loads any more."""
    for sheet in out.glob("_static/styles/*.css"):
        text = sheet.read_text(encoding="utf-8")
        sheet.write_text(OLDER_FONT.sub("", text), encoding="utf-8")
    for page in out.rglob("*.html"):
        before = page.read_text(encoding="utf-8")
        after = clean_page(before)
        if page.name != "search.html":
            after = SEARCH_ONLY.sub("", after)
        if after != before:
            page.write_text(after, encoding="utf-8")
    for pattern in UNUSED_FILES:
        for file in list(out.glob(pattern)):
            shutil.rmtree(file) if file.is_dir() else file.unlink()


def write_plain_pages(out: Path, title: str, start: str) -> None:
    """Fill the two pages that need no theme: the start page's redirect and 404."""
    values = {
        "TITLE": title,
        "START": f"{start}.html",
        "FOLDER": f"/{Path(start).parts[0]}/",
    }
    for name in ("index.html", "404.html"):
        text = (Path(__file__).parent / "pages" / name).read_text(encoding="utf-8")
        for key, value in values.items():
            text = text.replace(f"@{key}@", value)
        (out / name).write_text(text, encoding="utf-8")
