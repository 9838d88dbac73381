"""One explorable: checked values, a stated grid, and the same HTML in notebook and page."""

import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from cpcore.ui import catalogue, merge_stepper, network_lab, split_explorer
from cpcore.ui.controls import Choice, IntRange, Step
from cpcore.ui.explorable import Explorable
from cpcore.ui.shown import STATIC, WIDGET_VIEW
from tests.support.explorables import CHECKS

NAMES = sorted(catalogue)


def shows(**values):
    """A drawing that only repeats its input."""
    return (f"<p>{values}</p>", "<svg/>", "<details/>")


TOY = Explorable(
    name="toy",
    title="Toy",
    summary="For tests.",
    controls=(
        Choice("kind", "Kind", (("a", "first"), ("b", "second"))),
        IntRange("size", "Size", -1, 1, 0),
        Step("step", "Step", 2),
    ),
    drawing=shows,
)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "c"}, "kind: expected one of 'a', 'b', received 'c'"),
        ({"kind": 0}, "kind: expected one of 'a', 'b', received 0"),
        ({"size": 2}, "size: expected a whole number from -1 to 1, received 2"),
        ({"size": 0.0}, "size: expected a whole number from -1 to 1, received 0.0"),
        ({"size": True}, "size: expected a whole number from -1 to 1, received True"),
        ({"size": "0"}, "size: expected a whole number from -1 to 1, received '0'"),
        ({"step": 3}, "step: expected a whole number from 0 to 2, received 3"),
        ({"step": None}, "step: expected a whole number from 0 to 2, received None"),
        ({"speed": 1}, "control: expected one of kind, size, step, received 'speed'"),
    ],
)
def test_a_bad_value_is_one_error_naming_control_expected_and_received(values, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        TOY.draw(**values)


def test_live_ends_lie_beyond_the_stored_grid_and_end_too():
    sizes = [len(c.values) for c in network_lab.controls]
    assert sizes[:2] == [6, 4]  # what the page stores
    for x, w, step in ((-9, 9, 4), (9, -9, 3), (5, 0, 4), (-9, -9, 4)):
        state = network_lab.defaults() | {"x": x, "w": w, "step": step}
        caption, *parts = network_lab.lines(**state)
        CHECKS["network-lab"](state, caption, "".join(parts))
    with pytest.raises(ValueError, match="x: expected a whole number from -9 to 9, received 10"):
        network_lab.lines(x=10)


def test_values_left_out_keep_their_default():
    assert TOY.draw(size=1) == TOY.draw(kind="a", size=1, step=0)
    assert TOY.defaults() == {"kind": "a", "size": 0, "step": 0}


def test_the_grid_holds_every_combination_once_with_the_last_control_fastest():
    states = list(TOY.states())
    assert len(states) == 2 * 3 * 3
    assert len({tuple(s.values()) for s in states}) == len(states)
    assert states[0] == {"kind": "a", "size": -1, "step": 0}
    assert states[1] == {"kind": "a", "size": -1, "step": 1}
    assert states[-1] == {"kind": "b", "size": 1, "step": 2}


def test_the_lines_of_a_drawing_joined_are_the_drawing():
    """The page's data file stores lines; it must give back what Python drew."""
    for entry in catalogue.values():
        assert entry.draw() == "\n".join(entry.lines())
        assert all(line.strip() for line in entry.lines()), "no empty line is stored"


@pytest.mark.parametrize("name", NAMES)
def test_the_html_holds_controls_first_picture_and_table(name):
    entry = catalogue[name]
    root = ElementTree.fromstring(entry.html())
    assert root.get("class") == "cp-explorable"
    assert root.get("role") == "group"
    assert root.get("aria-label") == entry.title
    assert root.get("data-explorable") == name
    spec = json.loads(root.get("data-controls", ""))
    assert [c["name"] for c in spec] == [c.name for c in entry.controls]
    assert {c["name"]: c["value"] for c in spec} == entry.defaults()
    caption, *parts = entry.lines()
    assert caption in entry.html()
    assert "\n".join(parts) in entry.html()


def test_the_page_is_told_each_grid_in_the_order_python_uses():
    kind, size, step = (control.spec() for control in TOY.controls)
    assert kind["kind"] == "choice"
    assert kind["options"] == [["a", "first"], ["b", "second"]]
    assert (size["kind"], size["min"], size["max"]) == ("range", -1, 1)
    assert (step["kind"], step["max"]) == ("step", 2)


def test_an_opening_state_changes_picture_and_places_and_not_what_reset_restores():
    opened = TOY.html(kind="b", step=2)
    assert "<p>{'kind': 'b', 'size': 0, 'step': 2}</p>" in opened
    assert 'data-places="[1, 1, 2]"' in opened
    assert 'data-places="[0, 1, 0]"' in TOY.html()
    controls = re.compile(r'data-controls="([^"]*)"')
    assert controls.findall(opened) == controls.findall(TOY.html())
    with pytest.raises(ValueError, match="step: expected a whole number from 0 to 2, received 3"):
        TOY.html(step=3)


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_notebook_gets_one_constant_line_and_html_only(name, monkeypatch):
    monkeypatch.setenv(STATIC, "1")
    bundle = catalogue[name]._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == f"Explorable {name}: {catalogue[name].title}"
    assert bundle["text/html"] == catalogue[name].html()


@pytest.mark.parametrize("setting", [None, "", "0"])
def test_a_live_notebook_gets_the_widget_and_the_very_same_html(setting, monkeypatch):
    monkeypatch.delenv(STATIC, raising=False)
    if setting is not None:
        monkeypatch.setenv(STATIC, setting)
    bundle = split_explorer._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", WIDGET_VIEW}
    assert bundle["text/html"] == split_explorer.html()
    assert bundle[WIDGET_VIEW]["model_id"]


def test_without_ipywidgets_the_first_picture_still_shows(monkeypatch):
    monkeypatch.delenv(STATIC, raising=False)
    monkeypatch.delitem(sys.modules, "cpcore.ui.widget", raising=False)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)  # import raises ModuleNotFoundError
    assert set(merge_stepper._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_html_is_the_same_in_another_process():
    """Stored outputs are compared byte by byte, so nothing may depend on hash order or ids."""
    program = "from cpcore.ui import network_lab; print(network_lab.html())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == network_lab.html() + "\n"


@pytest.mark.parametrize("module", ["cpcore", "cpcore.ui", "cpcore.ui.static"])
def test_importing_loads_neither_widgets_nor_matplotlib_nor_torch(module):
    program = (
        f"import sys, {module}; "
        "print(*sorted({'ipywidgets', 'matplotlib', 'torch', 'IPython'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"
