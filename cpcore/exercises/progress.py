"""What a reader has solved and which hints are open, in one small JSON form.

Owns the form, which the page keeps in its local storage and Jupyter in a file of the user's data
folder: {"version": 1, "exercises": {NAME: {"solved": true, "hints": 2, "started": 0}}}.
CPCORE_PROGRESS names another file, or "off" to keep nothing. A file that cannot be read or written
never stops an exercise.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from cpcore.checks import expected, whole_number

VERSION = 1
FIELDS = {"solved", "hints", "started"}
Entries = dict[str, dict[str, Any]]


def path() -> Path:
    """The file that holds the progress."""
    named = os.environ.get("CPCORE_PROGRESS")
    if named:
        return Path(named)
    if sys.platform == "win32":
        folder = os.environ.get("APPDATA") or str(Path.home() / "AppData" / "Roaming")
    else:
        folder = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(folder) / "cpcore" / "progress.json"


def _off() -> bool:
    return os.environ.get("CPCORE_PROGRESS") == "off"


def load() -> Entries:
    """Entry by exercise; empty if there is no file, or none that can be read."""
    try:
        return {} if _off() else parse(path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def parse(text: str) -> Entries:
    """Entries from the JSON form.

    Raises: ValueError for a text that is not of this form, which is never taken over in part.
    """
    try:
        data = json.loads(text)
    except ValueError:
        raise expected("text", "progress as JSON", repr(text[:40])) from None
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise expected("text", f"an object of version {VERSION}", repr(text[:40]))
    entries = data.get("exercises")
    if not isinstance(entries, dict):
        raise expected("exercises", "an object", type(entries).__name__)
    for name, entry in entries.items():
        if not isinstance(entry, dict) or not set(entry) <= FIELDS:
            raise expected(name, f"an object of {', '.join(sorted(FIELDS))}", repr(entry))
        if not isinstance(entry.get("solved", False), bool):
            raise expected(f"{name}: solved", "true or false", repr(entry["solved"]))
        if whole_number(f"{name}: hints", entry.get("hints", 0), 0) > 3:
            raise expected(f"{name}: hints", "at most 3", entry["hints"])
        whole_number(f"{name}: started", entry.get("started", 0), 0)
    return entries


def text(entries: Entries) -> str:
    """The JSON form."""
    return json.dumps({"version": VERSION, "exercises": entries}, indent=1, sort_keys=True) + "\n"


def store(entries: Entries) -> str:
    """Write the file; returns "" or, in words, why it was not written."""
    if _off():
        return ""
    target = path()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _set_broken_aside(target)
        fresh = target.with_suffix(".new")
        fresh.write_text(text(entries), encoding="utf-8")
        fresh.replace(target)
    except OSError as error:
        return f"progress is not kept: {error.strerror or error}"
    return ""


def _set_broken_aside(target: Path) -> None:
    """A file that is not ours to understand is renamed, not overwritten."""
    if target.is_file():
        try:
            parse(target.read_text(encoding="utf-8"))
        except ValueError:
            target.replace(target.with_suffix(".unreadable"))


def update(name: str, **fields: Any) -> str:
    """Change fields of one entry; returns "" or why nothing was kept."""
    entries = load()
    entries[name] = {**entries.get(name, {}), **fields}
    return store(entries)


def solved(name: str) -> bool:
    """Whether the exercise has been solved."""
    return bool(load().get(name, {}).get("solved", False))


def hints_open(name: str) -> int:
    """How many hints are open."""
    return int(load().get(name, {}).get("hints", 0))


def begin(name: str) -> str:
    """Start the clock of an exercise; returns "" or why nothing was kept."""
    return update(name, started=int(time.time()))


def minutes_since_begin(name: str) -> float | None:
    """Minutes since the clock was started, None if it was not."""
    started = load().get(name, {}).get("started", 0)
    return (time.time() - started) / 60 if started else None


def export_text() -> str:
    """The progress as text, to carry to another machine or page."""
    return text(load())


def import_text(given: str) -> str:
    """Take over exported progress: solved stays solved, and no hint closes. Returns as `store`."""
    mine = load()
    for name, entry in parse(given).items():
        own = mine.setdefault(name, {})
        own["solved"] = own.get("solved", False) or entry.get("solved", False)
        own["hints"] = max(own.get("hints", 0), entry.get("hints", 0))
        if "started" in entry or "started" in own:
            own["started"] = max(own.get("started", 0), entry.get("started", 0))
    return store(mine)


def reset() -> str:
    """Forget everything. Returns as `store`."""
    return store({})
