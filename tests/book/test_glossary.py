"""The glossary: sorted, without repeats, in both languages, and about words that the book uses."""

import re
from functools import cache

import pytest

from scripts.pages import BOOK

TEXT = (BOOK / "glossary.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines()
        if line.startswith("| ") and "| 中文 |" not in line]  # fmt: skip
CHINESE = re.compile("[\N{CJK UNIFIED IDEOGRAPH-4E00}-\N{CJK UNIFIED IDEOGRAPH-9FFF}]")


@cache
def words_of(page: str) -> str:
    """The words of a page in one line, read once."""
    return re.sub(r"\\n|\W+", " ", (BOOK / page).read_text(encoding="utf-8").lower())


def test_terms_are_sorted_and_none_occurs_twice() -> None:
    terms = [row[0][1:].partition("](")[0].lower() for row in ROWS]
    assert len(terms) > 50
    assert terms == sorted(set(terms))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_term_has_a_chinese_one_a_sentence_and_a_place_that_uses_it(row: list[str]) -> None:
    link, chinese, meaning = row
    term, _, place = link.strip("[)").partition("](")
    assert CHINESE.search(chinese)
    assert meaning.endswith(".")
    page = words_of(place.partition("#")[0])
    plain, _, short = term.lower().rstrip(")").partition(" (")
    words = {re.sub(r"\W+", " ", word).strip() for word in (plain, short) if word}
    assert any(word in page for word in words), f"{place} never says {term}"
