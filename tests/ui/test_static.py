"""The page's data files: every picture of the grid, small, shared, and the same in every build."""

import gzip
import json

import pytest

from cpcore.ui import catalogue
from cpcore.ui.controls import Choice, Step
from cpcore.ui.explorable import Explorable
from cpcore.ui.static import frames_script, write_frames

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


@pytest.fixture(scope="module")
def scripts() -> dict[str, str]:
    return {name: frames_script(entry) for name, entry in catalogue.items()}


@pytest.mark.parametrize("name", NAMES)
def test_every_state_of_the_grid_is_stored_as_python_draws_it(scripts, name):
    data = stored(scripts[name])
    states = list(catalogue[name].states())
    assert len(data["states"]) == len(states)
    for place, state in zip(data["states"], states, strict=True):
        lines = [data["lines"][i] for i in data["frames"][place]]
        assert "\n".join(lines) == catalogue[name].draw(**state), state


@pytest.mark.parametrize("name", NAMES)
def test_no_line_and_no_picture_is_stored_twice(scripts, name):
    data = stored(scripts[name])
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
def test_an_explorable_weighs_at_most_its_budget(scripts, name):
    script = scripts[name].encode()
    most = MAX_GZIP_BYTES.get(name, OTHERS_MAX_GZIP_BYTES)
    assert len(gzip.compress(script, 6)) <= most
    assert len(script) <= MAX_STORED_BYTES_PER_STATE * len(list(catalogue[name].states()))


def test_text_that_could_end_a_script_or_a_line_is_escaped():
    entry = Explorable("x", "X", "s", (), lambda: ("<p></script>\u2028</p>",))
    script = frames_script(entry)
    assert "</" not in script
    assert "\u2028" not in script
    assert stored(script)["lines"] == ["<p></script>\u2028</p>"]


def test_two_builds_write_the_same_bytes_and_one_file_per_entry(tmp_path):
    for folder in ("a", "b"):
        write_frames(tmp_path / folder)
    first = {p.name: p.read_bytes() for p in (tmp_path / "a/explorables").iterdir()}
    second = {p.name: p.read_bytes() for p in (tmp_path / "b/explorables").iterdir()}
    assert sorted(first) == [f"{name}.js" for name in NAMES]
    assert first == second
