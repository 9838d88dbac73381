"""Every point that the source texts make is treated on a page and shown by a test."""

from __future__ import annotations

import pytest

from scripts.build import ROOT
from tests.support import coverage
from tests.support.coverage import DUE, Point, faults, points

POINTS = [point for source in points().values() for point in source]
LESS_FOR_NOW = "sed -i '/pending: {}$/d' tests/coverage_map.yml"


def test_every_source_is_listed_point_by_point() -> None:
    """A point has an id of its source, counted from 1, the line it stands on, and a sentence."""
    assert list(points()) == ["000", "001", "002", "004"]
    assert len(POINTS) >= 100
    for source, own in points().items():
        assert [p["id"] for p in own] == [f"{source}-{n:02}" for n in range(1, len(own) + 1)]
        lines = [p["line"] for p in own]
        assert lines == sorted(lines), f"{source}: not in the order of the text"
    assert len({p["point"] for p in POINTS}) == len(POINTS)
    assert all(p["point"].endswith(".") and len(p["point"]) > 20 for p in POINTS)
    known = {"id", "line", "point", "pages", "tests", "pending"}
    assert all(set(p) <= known for p in POINTS)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point["id"])
def test_a_point_leads_to_pages_and_tests_that_exist(point: Point) -> None:
    assert not faults(point), "\n".join([point["point"], *faults(point)])


def test_a_point_is_pending_only_while_its_chapter_is() -> None:
    """Once an issue has delivered all of its pages, its points count like all others."""
    for issue, pages in DUE.items():
        left = [page for page in pages if not (ROOT / "book" / page).is_file()]
        stale = [p["id"] for p in POINTS if p.get("pending") == issue and not left]
        assert not stale, f"{stale}: {LESS_FOR_NOW.format(issue)}"


GOOD = {
    "pages": ["notation.md#running-state", "03_rescale_and_merge.ipynb#idea-one-common-maximum"],
    "tests": [
        "tests/core/test_chunks.py::test_the_worked_two_chunk_sum",
        "book/03_rescale_and_merge.ipynb::merge_exact",
    ],
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"pages": []}, "no page or no test"),
        ({"tests": []}, "no page or no test"),
        ({"pages": ["gone.md"]}, "no such page"),
        ({"pages": ["notation.md#gone"]}, "no such anchor"),
        ({"pages": ["03_rescale_and_merge.ipynb#gone"]}, "no such anchor"),
        ({"tests": ["tests/core/gone.py::test_x"]}, "no such file"),
        ({"tests": ["tests/core/test_chunks.py::test_gone"]}, "no such test"),
        ({"tests": ["tests/core/test_chunks.py"]}, "no such test"),
        ({"tests": ["book/03_rescale_and_merge.ipynb::no cell says this"]}, "no such cell"),
        ({"tests": ["book/03_rescale_and_merge.ipynb"]}, "no such cell"),
        ({"pages": ["98_later.ipynb"]}, "no such page"),
        ({"pages": ["98_later.ipynb"], "tests": [], "pending": 98}, None),
        ({"pages": ["98_later.ipynb"], "pending": 99}, "issue 99 owes none"),
        ({"pages": ["98_later.ipynb"], "pending": 4}, "issue 4 may not be pending"),
        ({"pages": ["98_later.ipynb", "notation.md#gone"], "pending": 98}, "no such anchor"),
        ({"pending": 98}, "issue 98 owes none"),
    ],
)
def test_what_does_not_resolve_is_noticed(
    monkeypatch: pytest.MonkeyPatch, change: Point, said: str | None
) -> None:
    monkeypatch.setattr(coverage, "DUE", {98: {"98_later.ipynb"}, 99: {"99_last.ipynb"}})
    found = faults({**GOOD, **change})
    assert found == [] if said is None else any(said in fault for fault in found)
