"""How an object shows itself in a notebook: as HTML, and as live widgets where there are any."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, ClassVar

STATIC = "CPCORE_STATIC"  # set while stored notebooks are made: no widget view in the output
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class Shown:
    """What has HTML, and widgets that a function `build` of another module makes of it."""

    widgets: ClassVar[str]  # the name of that module, which needs ipywidgets

    def html(self) -> str:
        """What the page holds, and a notebook without widgets."""
        raise NotImplementedError

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Text and HTML always; the live widget unless a stored notebook is being made."""
        bundle: dict[str, Any] = {"text/plain": repr(self), "text/html": self.html()}
        if os.environ.get(STATIC) == "1":
            return bundle
        try:
            build = import_module(self.widgets).build
        except ModuleNotFoundError:  # ipywidgets is an extra; the HTML is enough to read
            return bundle
        view = build(self)._repr_mimebundle_()
        data = view[0] if isinstance(view, tuple) else view
        if data and WIDGET_VIEW in data:
            bundle[WIDGET_VIEW] = data[WIDGET_VIEW]
        return bundle
