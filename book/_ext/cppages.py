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
UNUSED_FILES = [
    "_static/scripts/fontawesome.js*",
    "_static/**/*.map",
    "_static/vendor/fontawesome/webfonts/*.ttf",
    "_static/sphinx-thebe.*",
    "_static/locales",
    "_static/*webpack-macros.html",
]


def clean_page(text: str) -> str:
    """One page without the scripts that this book never uses."""
    for pattern in NEEDLESS:
        text = re.sub(pattern, "", text, flags=re.DOTALL)
    text = re.sub(r'<dt class="sig [^>]*>.*?</dt>', plain_signature, text, flags=re.DOTALL)
    # A table of a narrow page scrolls in its own box, which the keyboard must reach.
    return text.replace(
        '<div class="pst-scrollable-table-container">',
        '<div class="pst-scrollable-table-container" tabindex="0">',
    )


def plain_signature(match: re.Match[str]) -> str:
    """A signature of several lines without Sphinx's list markup, which is invalid in a term."""
    text = match[0].replace("<dl>", '<span class="cp-params">').replace("</dl>", "</span>")
    return text.replace("<dd>", '<span class="cp-param">').replace("</dd>", "</span>")


def clean(out: Path) -> None:
    """Clean every page of the site and remove the files that nothing loads any more."""
    for page in out.rglob("*.html"):
        before = page.read_text(encoding="utf-8")
        after = clean_page(before)
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
