"""Read the files of the question bank in `book/data/interview`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from cpcore.interview import Bank, make_bank

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "book" / "data" / "interview"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # written in C: ten times as fast


def read_entries() -> list[dict[str, Any]]:
    """Every entry of the numbered files, in their order."""
    files = sorted(FOLDER.glob("[0-9]_*.yaml"))
    return [entry for file in files for entry in read(file)]


def read_chains() -> dict[str, list[str]]:
    """Chains by name."""
    return dict(read(FOLDER / "chains.yaml"))


def read_ladder() -> dict[str, list[str]]:
    """What 0 to 3 look like on each axis."""
    return dict(read(FOLDER / "ladder.yaml"))


def read_coding() -> list[dict[str, Any]]:
    """The tasks of the coding round."""
    return list(read(FOLDER / "coding.yaml"))


def load() -> Bank:
    """The validated bank with every placeholder filled.

    Raises: ValueError that lists every fault.
    """
    return make_bank(read_entries(), read_chains(), read_ladder())


def read(file: Path) -> Any:
    """What a YAML file holds."""
    return yaml.load(file.read_text(encoding="utf-8"), LOADER)
