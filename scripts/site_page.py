"""What one built page says about itself: ids, links, loads, scripts and readable text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

# `rel` values of a <link> that make the browser fetch something.
FETCHING_RELS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "preconnect"}
FETCHING_RELS |= {"dns-prefetch", "manifest", "apple-touch-icon"}
# Elements that fetch, apart from <link>, and the attributes that say what.
SOURCE = ["src"]
LOADING = {"script": SOURCE, "img": SOURCE, "iframe": SOURCE, "source": SOURCE, "audio": SOURCE}
LOADING |= {"embed": SOURCE, "track": SOURCE, "input": SOURCE, "video": [*SOURCE, "poster"]}
LOADING |= {"object": ["data"], "image": ["href", "xlink:href"], "use": ["href", "xlink:href"]}
REFRESH = re.compile(r"^\s*[\d.]+\s*[;,]\s*(?:url\s*=)?\s*['\"]?([^'\"]+)", re.IGNORECASE)
# Text inside these is code or machine data, where a dollar is a dollar.
CODE_TAGS = {"code", "pre", "script", "style", "math", "annotation", "textarea"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}


@dataclass
class Page:
    """What one page says about itself."""

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)  # <a href>: may lead outside
    loads: list[str] = field(default_factory=list)  # fetched when the page opens
    bases: list[str] = field(default_factory=list)  # <base href>: moves every other address
    styles: list[str] = field(default_factory=list)  # inline CSS
    scripts: list[str] = field(default_factory=list)  # sources and inline text
    bare_images: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)


class Reader(HTMLParser):
    """Collects a `Page` from HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the ids, links and loads of one tag."""
        values = {name: value or "" for name, value in attrs}
        page = self.page
        if tag not in VOID:
            self.open.append(tag)
        page.ids += [values["id"]] if "id" in values else []
        page.styles += [values["style"]] if "style" in values else []
        page.links += [values["href"]] if tag in ("a", "area") and "href" in values else []
        if tag == "link" and FETCHING_RELS & set(values.get("rel", "").split()):
            page.loads.append(values.get("href", ""))
        page.loads += [values[name] for name in LOADING.get(tag, ()) if name in values]
        page.bases += [values["href"]] if tag == "base" and "href" in values else []
        if tag == "meta" and values.get("http-equiv", "").lower() == "refresh":
            page.loads += REFRESH.findall(values.get("content", ""))
        if tag == "script":
            page.scripts.append(values.get("src", ""))
        page.loads += [part.split()[0] for part in values.get("srcset", "").split(",") if part]
        if tag == "img" and "alt" not in values:
            page.bare_images.append(values.get("src", "")[:60])

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost open tag of this name."""
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Sort text into style, script and what a reader sees."""
        inner = self.open[-1] if self.open else ""
        if inner == "style":
            self.page.styles.append(data)
        elif inner == "script":
            self.page.scripts.append(data)
        elif not CODE_TAGS & set(self.open):
            self.page.text.append(data)


def read_page(text: str) -> Page:
    """The parsed facts of one page."""
    reader = Reader()
    reader.feed(text)
    return reader.page
