"""The live form of an explorable: ipywidgets controls around one HTML view.

The picture is a widgets.HTML whose value is replaced. An Output area would be dead in a static
page and would fail a strict comparison of stored outputs.
"""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from cpcore.ui.controls import Choice, Control, IntRange
from cpcore.ui.explorable import Explorable

STYLE = """<style>
.cp-live { color: var(--jp-content-font-color1, inherit); line-height: 1.45; }
.cp-live svg { max-width: 100%; height: auto; margin: 0 1.5rem .5rem 0; vertical-align: top; }
.cp-live table { border-collapse: collapse; margin: .5rem 0; }
.cp-live th, .cp-live td { padding: .15rem .5rem; border: 1px solid #8886; text-align: right; }
.cp-live .cp-table { overflow-x: auto; }
</style>"""
_WIDE = {"description_width": "initial"}


def build(explorable: Explorable) -> widgets.VBox:
    """Controls over a picture; moving a control redraws the picture."""
    inputs = {control.name: _input(control) for control in explorable.controls}
    title = widgets.HTML(
        f'{STYLE}<div class="cp-live"><strong>{explorable.title}.</strong> '
        f"{explorable.summary}</div>"
    )
    view = widgets.HTML()
    reset = widgets.Button(description="Reset", tooltip=f"Reset {explorable.title}")

    def show(_change: object = None) -> None:
        values = {name: box.value for name, box in inputs.items()}
        view.value = f'<div class="cp-live">{explorable.draw(**values)}</div>'

    def restore(_button: object) -> None:
        for name, value in explorable.defaults().items():
            inputs[name].value = value

    for box in inputs.values():
        box.observe(show, names="value")
    reset.on_click(restore)
    show()
    rows = [_row(control, inputs[control.name]) for control in explorable.controls]
    bar = widgets.HBox([*rows, reset], layout=widgets.Layout(flex_flow="row wrap"))
    return widgets.VBox([title, bar, view])


def _input(control: Control) -> Any:
    """The widget that holds the control's value."""
    if isinstance(control, Choice):
        options = [(text, value) for value, text in control.options]
        return widgets.Dropdown(
            options=options, value=control.default, description=control.label, style=_WIDE
        )
    low, high = control.values[0], control.values[-1]
    if isinstance(control, IntRange) and control.live:
        low, high = control.live
    return widgets.IntSlider(
        value=control.default,
        min=low,
        max=high,
        description=control.label,
        style=_WIDE,
    )


def _row(control: Control, holder: Any) -> Any:
    """The control as shown: a cursor gets Back, Step and Play beside its slider."""
    if isinstance(control, (Choice, IntRange)):
        return holder
    back, step = _mover("Back", holder, -1), _mover("Step", holder, +1)
    play = widgets.Play(min=0, max=control.last, interval=1200, description="Play")
    widgets.link((play, "value"), (holder, "value"))
    return widgets.HBox([back, step, play, holder])


def _mover(text: str, holder: Any, by: int) -> widgets.Button:
    """A button that moves a slider by one, within its range."""
    button = widgets.Button(description=text, layout=widgets.Layout(width="auto"))

    def move(_button: object) -> None:
        holder.value = min(max(holder.value + by, holder.min), holder.max)

    button.on_click(move)
    return button
