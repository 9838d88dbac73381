"""The offline check of a page's content policy: every hole and every blocked script is found."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from scripts.build import ROOT
from scripts.site_policy import hashed, policy_faults

# `let a = 1` by `printf 'let a = 1' | openssl dgst -sha256 -binary | base64`
HASH = "'sha256-LAfYd7pbFUgwfQu8b4q135PeTG2z+/coPEUYCd74eCQ='"
PLAIN = '<html><head><meta charset="utf-8"><title>t</title></head><body>{}</body></html>'


@pytest.fixture(scope="module")
def cppolicy() -> ModuleType:
    """The module of the Sphinx extension that writes policies."""
    path = ROOT / "book/_ext/cppolicy.py"
    spec = importlib.util.spec_from_file_location("cppolicy", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(cppolicy: ModuleType, body: str = "") -> str:
    """A page with the policy that the build gives it."""
    text: str = cppolicy.with_policy(PLAIN.format(body))
    return text


def test_the_hash_is_that_of_the_specification() -> None:
    assert hashed("let a = 1") == HASH


def test_the_policy_that_the_build_writes_has_no_fault(cppolicy: ModuleType) -> None:
    inside = "<script>let a = 1</script><script data-x>\nlet b = 1;\n</script>"
    text = page(cppolicy, f'{inside}<script src="a.js"></script><style>p {{ top: 0 }}</style>')
    assert policy_faults(text) == []
    assert HASH in text
    assert text.count("sha256-") == 3


@pytest.mark.parametrize(
    ("added", "fault"),
    [
        ("<script>let a = 2</script>", "content policy: blocks <script> 'let a = 2'"),
        ("<style>p { top: 0 }</style>", "content policy: blocks <style> 'p { top: 0 }'"),
        ('<button onclick="go()">x</button>', "handler onclick inside <button>"),
        ("<img src=x onerror=go()>", "handler onerror inside <img>"),
        ('<a href=" JavaScript:go()">x</a>', "script as the address of <a>"),
        ('<form action="javascript:go()">', "script as the address of <form>"),
        ('<button formaction="javascript:go()">', "script as the address of <button>"),
    ],
)
def test_what_is_added_after_the_policy_is_found(
    cppolicy: ModuleType, added: str, fault: str
) -> None:
    assert policy_faults(page(cppolicy) + added) == [fault]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("script-src 'self'", "script-src 'self' 'unsafe-inline'", "script-src allows 'unsafe-"),
        ("script-src 'self'", "script-src 'self' 'unsafe-eval'", "script-src allows 'unsafe-eval'"),
        ("script-src 'self'", "script-src 'self' https:", "script-src allows https:"),
        ("script-src 'self'", "script-src 'self' 'sha256-x='", "script-src allows 'sha256-x='"),
        ("script-src 'self' file: 'wasm-unsafe-eval'; ", "", "script-src allows anything"),
        ("connect-src 'self'", "connect-src *", "connect-src: expected 'self', received *"),
        ("worker-src 'self'", "worker-src blob:", "worker-src: expected 'self', received blob:"),
        ("object-src 'none'; ", "", "object-src: expected 'none', received nothing"),
        ("default-src 'self'", "default-src *; default-src 'self'", "default-src: expected"),
        ("img-src 'self'", "img-src 'self' https:", "img-src: expected"),
        ("font-src 'self'", "font-src *", "font-src: expected"),
        ("form-action 'self'", "form-action *", "form-action: expected"),
        ("style-src 'self'", "style-src *", "style-src: expected"),
        ("style-src-elem 'self'", "style-src-elem 'self' https:", "style-src-elem allows https:"),
        ("default-src", "script-src-elem *; default-src", "script-src-elem is not expected"),
    ],
)
def test_a_hole_in_the_policy_is_found(
    cppolicy: ModuleType, old: str, new: str, fault: str
) -> None:
    text = page(cppolicy)
    assert text.count(old) == 1
    (found,) = policy_faults(text.replace(old, new))
    assert found.startswith(f"content policy: {fault}")


def test_nothing_may_come_before_the_policy(cppolicy: ModuleType) -> None:
    text = page(cppolicy)
    early = '<script src="a.js"></script><link rel="stylesheet" href="a.css">'
    assert policy_faults(early + text) == [
        "<script> before the content policy",
        "<link> before the content policy",
    ]


def test_two_policies_are_not_one(cppolicy: ModuleType) -> None:
    assert policy_faults(page(cppolicy) * 2) == ["2 content policies, expected 1"]
