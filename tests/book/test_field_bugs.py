"""What chapter 11 says of public reports is what its exhibits and the references say."""

from __future__ import annotations

from cpcore.museum import EXHIBITS, Museum
from tests.book.test_pages import CITATION, ENTRIES, sources

CHAPTER = sources()["11_field_bugs.ipynb"]
NOT_SHIPPED = {"teaching notebook", "user's own loop"}


def test_every_exhibit_has_its_report_in_the_references_and_the_chapter_links_it() -> None:
    cited = CITATION.findall(CHAPTER)
    for name, exhibit in EXHIBITS.items():
        source = exhibit.source
        fields = ENTRIES[source.key].fields
        assert fields["url"] == source.url, name
        assert fields["year"] == source.date[:4], name
        assert cited.count(source.key) == 1, name
        version = fields.get("version", "")
        assert not version.startswith("the description of") or source.date in version, name


def test_ten_of_the_twelve_speak_of_a_library_a_framework_or_a_standard() -> None:
    shown = Museum(seed=3).ids
    kinds = {name: EXHIBITS[name].source.kind for name in shown}
    others = {name for name, kind in kinds.items() if kind in NOT_SHIPPED}
    assert others == {"mean", "triangle"}
    assert len(shown) - len(others) == 10
    named = ("library", "framework", "standard")
    assert all(any(word in kinds[name] for word in named) for name in set(shown) - others)
    assert "Ten of the twelve speak of the code of a library" in CHAPTER


def test_the_four_behind_another_seed_are_the_ones_that_are_named() -> None:
    hidden = set(EXHIBITS) - set(Museum(seed=3).ids)
    tail = CHAPTER.partition("Four exhibits wait behind another seed")[2].partition("\n")[0]
    keys = set(CITATION.findall(tail))
    assert keys == {EXHIBITS[name].source.key for name in hidden}
    assert len(keys) == 4
