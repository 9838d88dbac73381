"""Tiny books through the real build: what must stop it, and what the pages become."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest

from scripts import assets, build, notebooks

VIEW = {"model_id": "abc", "version_major": 2, "version_minor": 0}


def empty_book(folder: Path) -> Path:
    """A book of one empty page with our configuration, extension and hosted files."""
    assets.ensure("katex")
    source = folder / "source"
    (source / "book").mkdir(parents=True)
    shutil.copy(build.ROOT / "_config.yml", source)
    for name in ("book/_ext", "book/assets", ".cache", "cpcore"):
        (source / name).symlink_to(build.ROOT / name)
    (source / "_toc.yml").write_text("format: jb-book\nroot: book/index\n")
    (source / "book/index.md").write_text("# Title\n\nText.\n")
    return source


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """The sources of a book of one empty page."""
    return empty_book(tmp_path)


def built(source: Path) -> str:
    """The page that a tiny book becomes."""
    out = source.parent / "out"
    build.build(source, out)
    return (out / "book/index.html").read_text(encoding="utf-8")


def notebook_with(data: dict[str, Any]) -> Any:
    """An executed notebook whose cell shows this output."""
    new = nbformat.v4
    cell = new.new_code_cell("x", execution_count=1, id="code")
    cell.outputs = [new.new_output("execute_result", data, execution_count=1)]
    cells = [new.new_markdown_cell("# Title", id="title"), cell]
    return new.new_notebook(cells=cells, metadata=dict(notebooks.METADATA))


def test_a_page_that_the_contents_name_must_exist(book: Path) -> None:
    toc = "format: jb-book\nroot: book/index\nchapters:\n  - file: book/gone\n"
    (book / "_toc.yml").write_text(toc)
    with pytest.raises(build.BuildError, match=r"^_toc\.yml: book/gone: no such page$"):
        build.build(book, book.parent / "out")


def test_a_dead_internal_link_stops_the_build(book: Path) -> None:
    (book / "book/index.md").write_text("# Title\n\n[gone](gone.md) and [here](#nowhere)\n")
    with pytest.raises(build.BuildError) as error:
        built(book)
    assert "gone.md" in str(error.value)
    assert "nowhere" in str(error.value)


def test_broken_formula_and_outside_request_stop_the_build_and_keep_the_old_site(
    book: Path,
) -> None:
    old = book.parent / "out"
    old.mkdir()
    (old / "kept.txt").write_text("old site")
    page = "# Title\n\nBroken $\\frac{1$ and $\\nosuchmacro$.\n\n![x](https://cdn.invalid/x.png)\n"
    (book / "book/index.md").write_text(page)
    with pytest.raises(build.BuildError) as error:
        built(book)
    assert "book/index.html: broken formula" in str(error.value)
    assert "book/index.html: outside request https://cdn.invalid/x.png" in str(error.value)
    assert [p.name for p in old.iterdir()] == ["kept.txt"]


def test_a_widget_view_changes_nothing_on_the_page(book: Path) -> None:
    (book / "book/index.md").unlink()
    shown = {"text/plain": "explorable", "text/html": "<p>first frame</p>"}
    plain = notebook_with(dict(shown))
    live = notebook_with({**shown, notebooks.WIDGET_VIEW: VIEW})
    live.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    pages = []
    for notebook in (plain, live):
        (book / "book/index.ipynb").write_text(json.dumps(notebook))
        pages.append(built(book))
    assert "first frame" in pages[0]
    assert pages[0] == pages[1]


RICH_PAGE = """# One Softmax, Many Devices

A formula $x$ opens this page, so it cannot describe it to a search engine.

This plain paragraph describes the page to search engines and link previews.

> **Prediction.** Decide.

> **Check.** Look.

> **Trap.** Careful.

> **Interview corner.** Say it.

> **Other.** A quotation.

(ref-milakov2018)=
A paper. See [it](index.md#ref-milakov2018).

$$x = 1$$

```python
x = 1
```

| a |
|---|
| b |
"""


@pytest.fixture(scope="module")
def rich_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One built page that holds everything which the extension changes."""
    source = empty_book(tmp_path_factory.mktemp("rich"))
    (source / "book/index.md").write_text(RICH_PAGE)
    return built(source)


def test_four_kinds_of_quotation_become_callouts_and_others_stay(rich_page: str) -> None:
    kinds = re.findall(r'<div class="cp-callout cp-(\w+)" role="note">', rich_page)
    assert kinds == ["prediction", "check", "trap", "interview"]
    assert rich_page.count("<blockquote>") == 1


def test_an_anchor_that_is_no_heading_is_reached(rich_page: str) -> None:
    assert 'href="#ref-milakov2018"' in rich_page


def test_the_first_plain_paragraph_describes_the_page(rich_page: str) -> None:
    description = "This plain paragraph describes the page"
    assert f'<meta name="description" content="{description}' in rich_page
    assert f'<meta property="og:description" content="{description}' in rich_page


def test_wide_formulas_code_and_tables_are_reached_by_the_keyboard(rich_page: str) -> None:
    for box in (
        '<span class="katex-display"',
        "<pre",
        '<div class="pst-scrollable-table-container"',
    ):
        assert f'{box} tabindex="0">' in rich_page
        assert f"{box}>" not in rich_page


def test_the_page_of_the_books_name_says_it_once_in_its_title(rich_page: str) -> None:
    assert "<title>One Softmax, Many Devices</title>" in rich_page


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """`make html` on an empty source, where a build only writes two pages; the builds done."""
    done: list[Path] = []

    def write(source: Path, out: Path, python: dict[str, bytes]) -> None:
        done.append(out)
        out.mkdir(parents=True, exist_ok=True)
        for name in ("index.html", "page.html"):
            (out / name).write_text(name)

    for name, value in {"SITE": "_build/html", "STAMP": "_build/built-from"}.items():
        monkeypatch.setattr(build, name, tmp_path / value)
    monkeypatch.setattr(build, "build", write)
    monkeypatch.setattr(build.assets, "ensure", lambda name: None)
    monkeypatch.setattr(build, "page_python", lambda source: {})
    source, out = str(tmp_path / "source"), str(build.SITE)
    monkeypatch.setattr(sys, "argv", ["build", "--source", source, "--out", out])
    return done


def test_what_is_up_to_date_is_not_built_again(
    quick: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    build.main()
    capsys.readouterr()
    build.main()
    assert len(quick) == 1
    assert capsys.readouterr().out == "Nothing changed: _build/html is up to date.\n"


@pytest.mark.parametrize("damage", ["delete", "cut", "add"])
def test_a_damaged_site_is_built_again(quick: list[Path], damage: str) -> None:
    build.main()
    page = build.SITE / "page.html"
    if damage == "delete":
        page.unlink()
    else:
        (page if damage == "cut" else build.SITE / "stray.html").write_text("")
    build.main()
    assert len(quick) == 2


def test_the_files_that_the_package_promises_exist() -> None:
    project = tomllib.loads((build.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for package, patterns in project["tool"]["setuptools"]["package-data"].items():
        for pattern in patterns:
            assert list((build.ROOT / package).glob(pattern)), (package, pattern)


def test_the_same_sources_have_the_same_fingerprint_and_a_change_another(book: Path) -> None:
    before = build.fingerprint(book)
    assert build.fingerprint(book) == before
    (book / "book/index.md").write_text("# Title\n\nText!\n")
    assert build.fingerprint(book) != before
