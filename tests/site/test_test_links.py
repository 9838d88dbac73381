"""Links to tests and anchors of the coverage map, in the pages as they are built."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.build import ROOT
from tests.support.coverage import points


def test_the_page_of_invariants_links_to_the_lines_of_its_tests(site: Path) -> None:
    page = (site / "book" / "invariants.html").read_text(encoding="utf-8")
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    address = re.search(r"^  url: (\S+)$", config, re.MULTILINE)
    assert address
    links = re.findall(rf'href="{address[1]}/blob/main/(tests/[\w/]+\.py)#L(\d+)"', page)
    assert len(links) > 30
    for name, line in links:
        lines = (ROOT / name).read_text(encoding="utf-8").split("\n")
        assert lines[int(line) - 1].startswith("def test_")


def test_every_anchor_of_the_coverage_map_is_on_its_built_page(site: Path) -> None:
    targets = {page for own in points().values() for p in own for page in p["pages"]}
    checked = 0
    for name, anchor in (target.split("#") for target in sorted(targets) if "#" in target):
        built = site / "book" / f"{Path(name).stem}.html"
        if built.is_file():
            plain = anchor.lstrip("0123456789-").replace("_", "-")  # as docutils writes an id
            ids = re.findall(r'id="([^"]+)"', built.read_text(encoding="utf-8"))
            assert plain in ids, f"{name}#{anchor}"
            checked += 1
    assert checked > 40
