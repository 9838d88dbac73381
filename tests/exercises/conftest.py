"""No test of an exercise touches the reader's own progress."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "data" / "progress.json"
    monkeypatch.setenv("CPCORE_PROGRESS", str(path))
    return path
