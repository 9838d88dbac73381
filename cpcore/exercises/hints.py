"""Hints that open one at a time, each giving away a little more than the last."""

from dataclasses import dataclass
from html import escape

from cpcore.exercises import progress
from cpcore.exercises.judging import find


@dataclass(frozen=True, repr=False)
class Hints:
    """The hints of an exercise that are open, the newest last."""

    name: str
    opened: tuple[str, ...]
    total: int
    note: str = ""

    def _lines(self) -> list[str]:
        return [f"Hint {i} of {self.total}: {text}" for i, text in enumerate(self.opened, 1)]

    def __repr__(self) -> str:
        return "\n".join([*self._lines(), *filter(None, [self.note])])

    def _repr_html_(self) -> str:
        body = "".join(f"<p>{escape(line)}</p>" for line in self._lines())
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        opened = f'data-exercise="{escape(self.name)}" data-hints="{len(self.opened)}"'
        return f'<div class="cp-hints" {opened}>{body}{note}</div>'


def hint(name: str) -> Hints:
    """Open the next hint of an exercise; shows those before it as well.

    Raises: ValueError for an unknown name.
    """
    texts = find(name).hints
    count = min(progress.hints_open(name) + 1, len(texts))
    note = progress.update(name, hints=count)
    return Hints(name, texts[:count], len(texts), note)
