"""Every picture of every explorable, drawn once for all tests that look at them: thousands."""

from __future__ import annotations

from functools import cache
from typing import Any

from cpcore.ui import catalogue
from cpcore.ui.static import frames_script


@cache
def drawn_states(name: str) -> list[tuple[dict[str, Any], tuple[str, ...]]]:
    """Every state of the stated grid with its lines."""
    return [(state, catalogue[name].lines(**state)) for state in catalogue[name].states()]


@cache
def script_of(name: str) -> str:
    """The script that the page loads for this explorable; it draws every state once more."""
    return frames_script(catalogue[name])
