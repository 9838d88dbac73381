"""The browser checks themselves: each must notice the fault that it is there for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.accessibility import (
    COLOR_RULES,
    OF_EACH,
    axe_findings,
    color_findings,
)
from tests.support.browser import Bare, scrolls_sideways, serving, visiting

PAGE = (
    '<!doctype html><html lang="en"><head><title>t</title><link rel="icon" href="data:,"></head>'
    "<body><main>{}</main></body>"
)


def faults(browser: Browser, folder: Path, body: str, axe: str) -> dict[str, list[str]]:
    """What the checks say about a page with this body."""
    (folder / "page.html").write_text(PAGE.format(body), encoding="utf-8")
    with (
        serving(folder, Bare) as home,
        visiting(browser, home, viewport={"width": 390, "height": 844}) as (page, seen),
    ):
        page.goto(home + "page.html", wait_until="load")
        page.wait_for_timeout(100)
        return {
            "outside": list(seen.outside),
            "complaints": list(seen.complaints),
            "scroll": scrolls_sideways(page),
            "axe": axe_findings(page, axe),
        }


@pytest.mark.parametrize(
    ("body", "check"),
    [
        ("<script>fetch('http://outside.invalid/x').catch(() => 0)</script>", "outside"),
        ("<img alt='x' src='http://outside.invalid/x.png'>", "outside"),
        ("<script>console.warn('careful')</script>", "complaints"),
        ("<script>throw new Error('broken')</script>", "complaints"),
        ("<p style='width: 600px'>wide</p>", "scroll"),
        ("<p style='color: #ccc; background: #fff'>faint</p>", "axe"),
        ("<p>fine</p><p>fine, <span style='color: #ccc'>faint</span></p>", "axe"),
        ("<p>fine</p><div style='background: #222'><p>dark on dark</p></div>", "axe"),
        ("<p>fine</p><p style='opacity: 0.3'>faint</p>", "axe"),
        (
            "<div class='highlight'><pre style='background: linear-gradient(#fff, #eee)'>"
            "code <b style='color: #ccc'>word</b></pre></div>",
            "axe",
        ),
        ("<p style='color: #ccc'>no</p>", "axe"),
        ("<p style='color: #ccc'><input type='radio' aria-label='x'> words</p>", "axe"),
        ("<math><mtext style='color: #ccc'>words</mtext></math>", "axe"),
        ("<p style='color: #ccc; position: absolute; left: -9px'>words</p>", "axe"),
        ("<fieldset><p aria-disabled='false' style='color: #ccc'>words</p></fieldset>", "axe"),
        ("<p><span class='katex-mathml' style='color: #ccc'>words</span></p>", "axe"),
        ("<input aria-label='x' value='words' style='color: #ccc'>", "axe"),
        ("<input type='range'>", "axe"),
    ],
)
def test_a_fault_is_noticed(
    browser: Browser, tmp_path: Path, axe: str, body: str, check: str
) -> None:
    assert faults(browser, tmp_path, body, axe)[check]


CLIPPED = "position: absolute; clip: rect(1px, 1px, 1px, 1px); color: #ccc"


@pytest.mark.parametrize(
    "body",
    [
        "<p style='color: #ccc'>x</p>",
        "<svg><text y='20' fill='#ccc' style='color: #ccc'>words</text></svg>",
        "<p aria-disabled='true' style='color: #ccc'>words <b>and more</b></p>",
        "<fieldset disabled><button style='color: #ccc'>words <b>and more</b></button></fieldset>",
        "<p style='color: #ccc; visibility: hidden'>words</p>",
        "<p style='opacity: 0'>words</p>",
        "<p style='color: #ccc; position: absolute; top: -999px'>words</p>",
        f"<p><span class='katex-mathml' style='{CLIPPED}'>words</span></p>",
        *(
            f"<input type='{kind}' style='color: #ccc'>"
            for kind in ("checkbox", "radio", "range", "color")
        ),
    ],
)
def test_what_is_left_out_is_no_fault_to_axe_either(
    browser: Browser, tmp_path: Path, axe: str, body: str
) -> None:
    (tmp_path / "page.html").write_text(PAGE.format(body), encoding="utf-8")
    with serving(tmp_path, Bare) as home, visiting(browser, home) as (page, _):
        page.goto(home + "page.html")
        page.evaluate(axe)
        rules = {"runOnly": {"type": "rule", "values": COLOR_RULES}}
        assert page.evaluate("async o => (await axe.run(o)).violations", rules) == []
        assert page.evaluate(f"({OF_EACH})('body').size") == 0


def test_a_clean_page_has_no_findings(browser: Browser, tmp_path: Path, axe: str) -> None:
    found = faults(browser, tmp_path, "<h1>Title</h1><p>Text.</p>", axe)
    assert not any(found.values()), found


FAINT = "<p style='color: #ccc'>faint</p>"
LINK = "<a href='#' style='color: #333; text-decoration: none'>link</a>"
WORDS = "<p>Words</p><p><a>words</a></p>"
ALONE = f"{WORDS}<p>{LINK}</p>"
FAINT_LINK = "<a href='#' style='color: #ccc'>a link</a>"
FAINT_X = FAINT_LINK.replace("a link", "x")
UNSURE = (  # something lies over it, which says nothing about the same words elsewhere
    f"<div style='position: relative'>{FAINT}"
    "<i style='position: absolute; inset: 0; background: linear-gradient(#fff, #eee)'></i></div>"
)
SHADOWED = (
    "<div class='highlight'><pre style='background: linear-gradient(#fff, #eee)'>a <i>b</i></pre>"
    "</div>"
)


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        (FAINT, "<p>fine</p>" + FAINT, None),
        ("<p>fine</p>", "<p>fine</p>" + FAINT, "color-contrast"),
        (FAINT, f"<div style='background: #eee'>{FAINT}</div>", "color-contrast"),
        (UNSURE, FAINT, "color-contrast"),
        (f"<div aria-disabled='true'>{FAINT}</div>", FAINT, "color-contrast"),
        (f"<div style='text-indent: -9999px'>{FAINT}</div>", FAINT, "color-contrast"),
        ("<p>fine</p>", "<p style='-webkit-text-fill-color: #ccc'>faint</p>", "color-contrast"),
        (
            "<p style='color: #777; font-size: 24px'>large</p>",
            FAINT.replace("ccc", "777"),
            "color-contrast",
        ),
        (f"<p>Some words<br>{LINK}</p>", f"<p>Now in a {LINK} sentence.</p>", "link-in-text-block"),
        # Words that the first page has settled: axe is asked about the link alone.
        (ALONE, f"<p>A sentence with a {LINK} in it.</p>", "link-in-text-block"),
        (ALONE, f"<p>So few words {LINK.replace('link', 'and a link')}</p>", "link-in-text-block"),
        (WORDS, f"<p>A sentence with {LINK.replace('link', 'x')} in it.</p>", "link-in-text-block"),
        (WORDS, f"<p aria-disabled='true'>Words and a {LINK}</p>", "link-in-text-block"),
        (ALONE, f"<p><a>Words of an anchor</a> {LINK}</p>", "link-in-text-block"),
        (WORDS, f"<p>Words and {FAINT_X} and {FAINT_LINK} and {FAINT_X}.</p>", "color-contrast"),
    ],
)
def test_a_look_is_judged_once_and_any_other_again(
    browser: Browser, tmp_path: Path, axe: str, first: str, second: str, rule: str | None
) -> None:
    judged: set[str] = set()
    with serving(tmp_path, Bare) as home, visiting(browser, home) as (page, _):
        for name, body in (("first", first), ("second", second)):
            (tmp_path / f"{name}.html").write_text(PAGE.format(body), encoding="utf-8")
            page.goto(f"{home}{name}.html")
            found = color_findings(page, axe, judged=judged)
    assert [line.split()[0] for line in found] == ([] if rule is None else [rule])


def test_words_above_the_window_of_a_scrolled_page_are_judged(
    browser: Browser, tmp_path: Path, axe: str
) -> None:
    (tmp_path / "page.html").write_text(
        PAGE.format(FAINT + "<div style='height: 3000px'></div>"), encoding="utf-8"
    )
    with serving(tmp_path, Bare) as home, visiting(browser, home) as (page, _):
        page.goto(home + "page.html")
        page.evaluate("scrollTo(0, 900)")
        assert color_findings(page, axe)


def test_a_judged_page_is_left_as_it_was(browser: Browser, tmp_path: Path, axe: str) -> None:
    (tmp_path / "page.html").write_text(PAGE.format(SHADOWED), encoding="utf-8")
    with serving(tmp_path, Bare) as home, visiting(browser, home) as (page, _):
        page.goto(home + "page.html")
        looks = "() => [...document.querySelectorAll('*')].map(e => e.outerHTML + "
        looks += "JSON.stringify(getComputedStyle(e).backgroundImage))"
        before = page.evaluate(looks)
        judged: set[str] = set()
        for _ in range(2):  # the second time nothing is new, and all of the code is put aside
            color_findings(page, axe, judged=judged)
            assert page.evaluate(looks) == before


def browser_tests(path: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """A run of some tests of this folder with this folder of programs only."""
    files = ["tests/site/test_checker.py", "tests/site/test_opening_state.py"]
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "PYTEST_ADDOPTS")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "notice or index", *files],
        cwd=Path(__file__).resolve().parents[2],
        env={**environment, "PATH": str(path), **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_machine_without_chromium_gets_one_line_that_says_how_to_get_it(tmp_path: Path) -> None:
    done = browser_tests(tmp_path)
    said = [line for line in done.stdout.split("\n") if "no Chromium" in line]
    assert done.returncode == 0, done.stdout
    assert len(said) == 1
    assert re.match(r"SKIPPED \[19\] .*: `apt-get install chromium`, or any on PATH$", said[0])


def test_the_hosted_checks_fail_without_chromium(tmp_path: Path) -> None:
    done = browser_tests(tmp_path, CI="true")
    assert done.returncode == 1
    assert "19 errors" in done.stdout
