"""Every picture of every explorable, written as the classic scripts that the built page loads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from cpcore.ui.catalogue import catalogue
from cpcore.ui.explorable import Explorable


def frames_script(explorable: Explorable) -> str:
    """A classic script that hands the page every picture of the stated grid.

    ``lines`` holds each distinct line once, ``frames`` each distinct picture as line numbers, and
    ``states`` names the picture of each state, the last control varying fastest. A classic script
    loads from disk too, where fetch and modules are blocked.
    """
    lines: dict[str, int] = {}
    frames: dict[tuple[int, ...], int] = {}
    states = []
    for state in explorable.states():
        frame = tuple(lines.setdefault(line, len(lines)) for line in explorable.lines(**state))
        states.append(frames.setdefault(frame, len(frames)))
    data = {"lines": list(lines), "frames": list(frames), "states": states}
    return f"window.cpExplorables.register({json.dumps(explorable.name)},{as_script(data)});\n"


def as_script(data: object) -> str:
    """Plain values as a literal that may stand in any classic script."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # U+2028 and U+2029 end a line in old script engines; "</" could end an inlined script.
    return text.replace("</", "<\\/").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def shown_in(pages: Iterable[str]) -> list[str]:
    """Names of the explorables that these pages (HTML) show."""
    marks = {name for page in pages for name in re.findall(r'data-explorable="([^"]+)"', page)}
    return [name for name in catalogue if name in marks]


def write_frames(outdir: Path, names: Iterable[str]) -> None:
    """Write ``outdir/explorables/NAME.js`` for each of these entries of the catalogue."""
    folder = outdir / "explorables"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / f"{name}.js"
        path.write_bytes(frames_script(catalogue[name]).encode())
