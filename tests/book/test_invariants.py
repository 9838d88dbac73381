"""The page of invariants: every entry leads to a test that exists."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from scripts.build import ROOT
from tests.support.coverage import functions_of

PAGE = (ROOT / "book" / "invariants.md").read_text(encoding="utf-8")
LINKS = re.findall(r"^- \{test\}`([^`]+)`$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def role() -> ModuleType:
    spec = importlib.util.spec_from_file_location("testlinks", ROOT / "book/_ext/testlinks.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("link", LINKS)
def test_a_link_names_a_file_and_a_test_of_it(link: str) -> None:
    name, _, function = link.partition("::")
    assert function in functions_of(ROOT / "tests" / name)


def test_every_entry_has_a_test_and_none_is_named_twice() -> None:
    entries = re.split(r"^#{2,3} ", PAGE, flags=re.MULTILINE)[1:]
    without = [e.split("\n")[0] for e in entries if "{test}" not in e]
    assert without == ["Run these ten before you trust your ring", "Then train",
                       "What is conserved", "What may change"]  # fmt: skip
    assert len(LINKS) == len(set(LINKS)) == PAGE.count("{test}") > 30


def test_there_are_ten_to_run_first() -> None:
    ten = PAGE.split("## Run these ten")[1].split("\n## ")[0]
    numbers = re.findall(r"^### (\d+)\. ", ten, re.MULTILINE)
    assert numbers == [str(n) for n in range(1, 11)]


def test_a_link_goes_to_the_line_on_which_the_test_starts(role: ModuleType) -> None:
    for link in LINKS:
        name, _, function = link.partition("::")
        lines = (ROOT / "tests" / name).read_text(encoding="utf-8").split("\n")
        assert lines[role.line_of(link) - 1].startswith(f"def {function}(")


@pytest.mark.parametrize(
    "target",
    ["core/gone.py::test_x", "core/test_chunks.py::test_gone", "core/test_chunks.py", "core::x"],
)
def test_a_test_that_does_not_exist_is_refused_by_name(role: ModuleType, target: str) -> None:
    with pytest.raises(ValueError, match="expected FILE::FUNCTION below tests/") as caught:
        role.line_of(target)
    assert repr(target) in str(caught.value)


def test_the_address_is_not_written_twice() -> None:
    """It stands in _config.yml alone."""
    for path in (ROOT / "book/invariants.md", Path(ROOT / "book/_ext/testlinks.py")):
        assert "github.com" not in path.read_text(encoding="utf-8")
