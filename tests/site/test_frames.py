"""The picture files of the built site."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpcore.ui import catalogue
from tests.support.drawn import script_of


@pytest.mark.parametrize("name", sorted(catalogue))
def test_another_process_writes_the_same_bytes(site: Path, name: str) -> None:
    """The build is a process of its own, with another hash seed."""
    built = (site / "explorables" / f"{name}.js").read_bytes()
    assert built == script_of(name).encode()


def test_no_other_picture_file_is_served(site: Path) -> None:
    served = sorted(path.stem for path in (site / "explorables").iterdir())
    assert served == sorted(catalogue)
