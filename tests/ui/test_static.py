"""The page's data files: every picture of the grid, small, shared, and the same in every build."""

import gzip
import json

import pytest

from cpcore.ui import catalogue, static
from cpcore.ui.controls import Choice, Step
from cpcore.ui.explorable import Explorable
from cpcore.ui.static import frames_script
from tests.support.drawn import drawn_states, script_of

NAMES = sorted(catalogue)
MAX_GZIP_BYTES = {"laboratory": 300_000}
OTHERS_MAX_GZIP_BYTES = 150_000
MAX_STORED_BYTES_PER_STATE = 3_000


def stored(script: str) -> dict:
    """The data inside a script, read as a browser would."""
    start, end = "window.cpExplorables.register(", ");\n"
    assert script.startswith(start)
    assert script.endswith(end)
    return json.loads(f"[{script[len(start) : -len(end)]}]")[1]


@pytest.mark.parametrize("name", NAMES)
def test_every_state_of_the_grid_is_stored_as_python_draws_it(name):
    data = stored(script_of(name))
    assert len(data["states"]) == len(drawn_states(name))
    for place, (state, lines) in zip(data["states"], drawn_states(name), strict=True):
        assert tuple(data["lines"][i] for i in data["frames"][place]) == lines, state


@pytest.mark.parametrize("name", NAMES)
def test_no_line_and_no_picture_is_stored_twice(name):
    data = stored(script_of(name))
    assert len(set(data["lines"])) == len(data["lines"])
    assert len({tuple(frame) for frame in data["frames"]}) == len(data["frames"])


def test_equal_pictures_are_stored_once():
    entry = Explorable(
        name="flat",
        title="Flat",
        summary="For tests.",
        controls=(Choice("kind", "Kind", (("a", "a"), ("b", "b"))), Step("step", "Step", 1)),
        drawing=lambda kind, step: (f"<p>{step}</p>", "<svg/>"),
    )
    data = stored(frames_script(entry))
    assert data == {
        "lines": ["<p>0</p>", "<svg/>", "<p>1</p>"],
        "frames": [[0, 1], [2, 1]],
        "states": [0, 1, 0, 1],
    }


@pytest.mark.parametrize("name", NAMES)
def test_an_explorable_weighs_at_most_its_budget(name):
    script = script_of(name).encode()
    most = MAX_GZIP_BYTES.get(name, OTHERS_MAX_GZIP_BYTES)
    assert len(gzip.compress(script, 6)) <= most
    assert len(script) <= MAX_STORED_BYTES_PER_STATE * len(list(catalogue[name].states()))


def test_text_that_could_end_a_script_or_a_line_is_escaped():
    entry = Explorable("x", "X", "s", (), lambda: ("<p></script>\u2028</p>",))
    script = frames_script(entry)
    assert "</" not in script
    assert "\u2028" not in script
    assert stored(script)["lines"] == ["<p></script>\u2028</p>"]


def test_pages_get_one_file_per_entry_that_they_show(tmp_path, monkeypatch):
    """That a build of its own writes the same bytes is checked on the built site."""
    monkeypatch.setattr(static, "frames_script", lambda entry: script_of(entry.name))
    fragment = catalogue["network-lab"].html()
    names = static.shown_in(["<p>split-explorer</p>", fragment, fragment])
    assert names == ["network-lab"]
    static.write_frames(tmp_path, names)
    written = {p.name: p.read_text("utf-8") for p in (tmp_path / "explorables").iterdir()}
    assert written == {"network-lab.js": script_of("network-lab")}
