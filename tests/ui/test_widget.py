"""The live form: moving a real ipywidgets control changes the picture, without a browser."""

import ipywidgets as widgets
import pytest

from cpcore.ui import catalogue, merge_stepper, network_lab, split_explorer
from cpcore.ui.widget import build

NAMES = sorted(catalogue)


def walk(box: widgets.Widget) -> list[widgets.Widget]:
    """A widget and everything inside it."""
    inside = [w for child in getattr(box, "children", ()) for w in walk(child)]
    return [box, *inside]


def by_label(box: widgets.Widget, label: str) -> widgets.Widget:
    """The one control with this label."""
    found = [w for w in walk(box) if getattr(w, "description", "") == label]
    assert len(found) == 1, label
    return found[0]


def picture(box: widgets.Widget) -> str:
    """What the HTML view shows now."""
    return box.children[-1].value


@pytest.mark.parametrize("name", NAMES)
def test_the_first_picture_is_that_of_the_defaults(name):
    assert catalogue[name].draw() in picture(build(catalogue[name]))


@pytest.mark.parametrize("name", NAMES)
def test_moving_each_control_to_each_value_shows_python_s_drawing(name):
    entry, box = catalogue[name], build(catalogue[name])
    for control in entry.controls:
        holder = by_holder(box, control.label)
        for value in control.values:
            holder.value = value
            expected = entry.draw(**{control.name: value})
            assert expected in picture(box), (control.name, value)
        holder.value = control.default


def by_holder(box: widgets.Widget, label: str) -> widgets.Widget:
    """The dropdown or slider with this label; a stepper's buttons may share its label."""
    kinds = (widgets.Dropdown, widgets.IntSlider)
    found = [w for w in walk(box) if isinstance(w, kinds) and w.description == label]
    assert len(found) == 1, label
    return found[0]


def test_back_and_step_move_the_cursor_and_stop_at_both_ends():
    box = build(network_lab)
    back, step = (
        next(w for w in walk(box) if isinstance(w, widgets.Button) and w.description == text)
        for text in ("Back", "Step")
    )
    back.click()
    assert network_lab.draw(step=0) in picture(box)
    for _ in range(6):
        step.click()
    assert network_lab.draw(step=4) in picture(box)
    back.click()
    assert network_lab.draw(step=3) in picture(box)


def test_play_moves_the_same_cursor():
    box = build(merge_stepper)
    play = next(w for w in walk(box) if isinstance(w, widgets.Play))
    play.value = 2
    assert merge_stepper.draw(step=2) in picture(box)
    assert play.max == 5


@pytest.mark.parametrize("name", NAMES)
def test_reset_restores_every_control_and_the_first_picture(name):
    entry, box = catalogue[name], build(catalogue[name])
    for control in entry.controls:
        by_holder(box, control.label).value = control.values[-1]
    assert entry.draw() not in picture(box)
    by_label(box, "Reset").click()
    assert entry.draw() in picture(box)


@pytest.mark.parametrize("name", NAMES)
def test_every_control_has_a_label_and_no_output_area_is_used(name):
    for widget in walk(build(catalogue[name])):
        assert not isinstance(widget, widgets.Output)
        if isinstance(widget, widgets.ValueWidget) and not isinstance(widget, widgets.HTML):
            assert widget.description
        if isinstance(widget, widgets.Button):
            assert widget.description


def test_two_views_of_one_explorable_do_not_share_their_state():
    first, second = build(split_explorer), build(split_explorer)
    by_holder(first, "Values").value = "constant"
    assert picture(first) != picture(second)
    assert split_explorer.draw() in picture(second)
