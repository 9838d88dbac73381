"""The offline check of a built site: each kind of fault is found, a clean site has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_site import check_site

POLICY = (
    "default-src 'self'; style-src 'self' file: 'unsafe-inline'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' file: data:; font-src 'self' file:; connect-src 'self'; worker-src 'self'; "
    "form-action 'self' file:; frame-src 'none'; object-src 'none'; base-uri 'none'; "
    "script-src 'self'; style-src-elem 'self'"
)
PAGE = (
    '<!doctype html><html lang="en"><head>'
    f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    "<title>t</title>{}</head><body>{}</body></html>"
)


def site(folder: Path, body: str, head: str = "") -> Path:
    """A site of two pages, the second clean, and a page beside its folder."""
    (folder / "beside.html").write_text("not of the site", encoding="utf-8")
    folder = folder / "site"
    folder.mkdir(exist_ok=True)
    (folder / "page.html").write_text(PAGE.format(head, body), encoding="utf-8")
    (folder / "other.html").write_text(PAGE.format("", '<h2 id="there">x</h2>'), encoding="utf-8")
    (folder / "style.css").write_text("p { color: red }", encoding="utf-8")
    return folder


CLEAN = [
    '<a href="other.html">x</a> <a href="other.html#there">x</a> <a href="#me" id="me">x</a>',
    '<a href="https://example.org/">other sites may be linked to</a>',
    "<code>$x^2$ and $$</code> <p>It costs $5 or $6.</p>",
    '<img alt="" src="data:image/gif;base64,x">',
    '<svg><use href="#mark"/><path id="mark"/></svg>',
    '<object data="style.css"></object> <p style="background: url(style.css)">x</p>',
]
FAULTS = [
    ('<a href="gone.html">x</a>', "dead link gone.html"),
    ('<a href="other.html#nowhere">x</a>', "dead link other.html#nowhere: no such anchor"),
    ('<a href="#nowhere">x</a>', "dead link #nowhere: no such anchor"),
    ('<img alt="" src="gone.png">', "dead link gone.png"),
    ('<span class="katex-error">\\frac{1</span>', "broken formula (KaTeX error)"),
    ('<span style="color:#cc0000">\\nope</span>', "broken formula (KaTeX error)"),
    ("<p>where $$x = 1$$ holds</p>", "unrendered formula near '$$x = 1$$ holds'"),
    ("<p>where $x_1$ holds</p>", "unrendered formula near '$x_1$ holds'"),
    (r"<p>where \(x\) holds</p>", "unrendered formula near '\\\\(x\\\\) holds'"),
    ('<img alt="" src="https://cdn.invalid/x.png">', "outside request https://cdn.invalid/x.png"),
    ('<script src="//cdn.invalid/x.js"></script>', "outside request //cdn.invalid/x.js"),
    ('<iframe src="http://cdn.invalid/"></iframe>', "outside request http://cdn.invalid/"),
    ("<style>@import 'http://cdn.invalid/a.css'</style>", "outside request http://cdn.invalid/a"),
    ('<p style="background: url(http://cdn.invalid/a)">x</p>', "outside request http://cdn"),
    ('<a href="../beside.html">x</a>', "dead link ../beside.html: leaves the site"),
    ('<a href="/../beside.html">x</a>', "dead link /../beside.html: leaves the site"),
    ('<object data="gone.svg"></object>', "dead link gone.svg"),
    ('<object data="http://cdn.invalid/x.svg"></object>', "outside request http://cdn"),
    ('<video poster="gone.png"></video>', "dead link gone.png"),
    ('<video poster="http://cdn.invalid/x.png"></video>', "outside request http://cdn"),
    ('<svg><image href="gone.png"/></svg>', "dead link gone.png"),
    ('<svg><image xlink:href="http://cdn.invalid/x.png"/></svg>', "outside request http://cdn"),
    ('<svg><use href="gone.svg#x"/></svg>', "dead link gone.svg#x"),
    ('<svg><use xlink:href="#nowhere"/></svg>', "dead link #nowhere: no such anchor"),
    ('<p style="background: url(gone.png)">x</p>', "dead link gone.png"),
    ("<script>const THEBE_JS_URL = 1</script>", "leftover script of sphinx-thebe"),
    ('<script src="require.js"></script>', "leftover script of require.js"),
    ("<script>window.MathJax = {}</script>", "leftover script of MathJax"),
    ('<p id="a">x</p><p id="a">x</p>', "id 'a' used 2 times"),
    ('<img src="data:image/gif;base64,x">', "image without alt: data:image/gif;base64,x"),
    (f"<p>{'x' * 1_200_000}</p>", "weighs 1,2"),
]
HEADS = [
    ('<link rel="stylesheet" href="https://cdn.invalid/a.css">', "outside request https://cdn"),
    ('<link rel="preconnect" href="https://fonts.invalid">', "outside request https://fonts"),
    ('<link rel="stylesheet" href="gone.css">', "dead link gone.css"),
    ('<base href="https://cdn.invalid/">', "base address https://cdn.invalid/"),
    ('<base href="folder/">', "base address folder/: moves every link"),
    ('<meta http-equiv="refresh" content="0; url=gone.html">', "dead link gone.html"),
    ('<meta http-equiv="Refresh" content="3;URL=\'//cdn.invalid/\'">', "outside request //cdn"),
    ("<style>p { background: url('gone.png') }</style>", "dead link gone.png"),
]


def test_a_page_without_a_content_policy_is_found(tmp_path: Path) -> None:
    out = site(tmp_path, "")
    text = (out / "page.html").read_text().replace("Content-Security-Policy", "x")
    (out / "page.html").write_text(text)
    assert check_site(out) == ["page.html: 0 content policies, expected 1"]


@pytest.mark.parametrize("body", CLEAN)
def test_a_clean_page_has_no_findings(tmp_path: Path, body: str) -> None:
    assert check_site(site(tmp_path, body)) == []


@pytest.mark.parametrize(("body", "finding"), FAULTS, ids=[f[1][:30] for f in FAULTS])
def test_a_fault_of_a_page_is_found(tmp_path: Path, body: str, finding: str) -> None:
    found = check_site(site(tmp_path, body))
    assert any(line.startswith(f"page.html: {finding}") for line in found), found


@pytest.mark.parametrize(("head", "finding"), HEADS)
def test_a_fault_of_a_head_is_found(tmp_path: Path, head: str, finding: str) -> None:
    found = check_site(site(tmp_path, "", head))
    assert any(line.startswith(f"page.html: {finding}") for line in found), found


def test_a_canonical_address_is_no_request(tmp_path: Path) -> None:
    head = '<link rel="canonical" href="https://example.org/page.html">'
    assert check_site(site(tmp_path, "", head)) == []


def test_a_style_sheet_that_loads_from_outside_is_found(tmp_path: Path) -> None:
    out = site(tmp_path, "")
    (out / "style.css").write_text("@font-face { src: url('https://f.invalid/a.woff2') }")
    assert check_site(out) == ["style.css: outside request https://f.invalid/a.woff2"]


@pytest.mark.parametrize("url", ["gone.woff2?v=1", "../beside.html"])
def test_a_file_that_a_style_sheet_names_must_be_in_the_site(tmp_path: Path, url: str) -> None:
    out = site(tmp_path, "")
    (out / "style.css").write_text(f"@font-face {{ src: url({url}) }} p {{ mask: url(#id) }}")
    assert check_site(out) == [f"style.css: missing file {url}"]


def test_a_style_sheet_may_load_what_the_site_holds(tmp_path: Path) -> None:
    out = site(tmp_path, "")
    (out / "fonts").mkdir()
    (out / "fonts/a.woff2").touch()
    (out / "fonts/a.css").write_text("p { src: url(a.woff2?v=1), url('data:font/woff2,x') }")
    assert check_site(out) == []


def test_a_page_heavy_when_packed_is_found(tmp_path: Path) -> None:
    import random

    noise = "".join(chr(n) for n in random.Random(0).choices(range(0x3400, 0x4D00), k=300_000))
    found = check_site(site(tmp_path, f"<p>{noise}</p>"))
    assert found
    assert "gzipped, budget 350,000" in found[0]


def test_fonts_do_not_count_as_weight(tmp_path: Path) -> None:
    out = site(tmp_path, "", '<link rel="preload" href="big.woff2">')
    (out / "big.woff2").write_bytes(b"x" * 2_000_000)
    assert check_site(out) == []


def test_an_empty_folder_is_no_site(tmp_path: Path) -> None:
    assert check_site(tmp_path) == [f"{tmp_path}: no page was built"]
