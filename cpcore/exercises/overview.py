"""The map of all exercises: what there is, what is solved, how many hints are open."""

from dataclasses import dataclass
from html import escape

from cpcore.exercises import progress
from cpcore.exercises.bank import catalogue

COLUMNS = ("exercise", "level", "minutes", "state", "title")
Row = tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Overview:
    """One row per exercise, in the order of the book."""

    rows: tuple[Row, ...]

    def head(self) -> str:
        """How many are solved."""
        solved = sum("solved" in row[3] for row in self.rows)
        return f"{solved} of {len(self.rows)} exercises solved"

    def __repr__(self) -> str:
        every = [COLUMNS, *self.rows]
        widths = [max(len(row[i]) for row in every) for i in range(len(COLUMNS))]
        lines = ["  ".join(f"{x:{n}}" for x, n in zip(row, widths, strict=True)) for row in every]
        return "\n".join([self.head(), *(line.rstrip() for line in lines)])

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
        body = "\n".join(
            f'<tr><th scope="row">{escape(name)}</th>'
            + "".join(f"<td>{escape(text)}</td>" for text in rest)
            + "</tr>"
            for name, *rest in self.rows
        )
        table = f"<table><tr>{head}</tr>\n{body}\n</table>"
        return f'<p>{self.head()}</p><div class="cp-table" tabindex="0">{table}</div>'


def overview() -> Overview:
    """The exercises and the reader's progress."""
    entries = progress.load()
    return Overview(tuple(_row(name, entries.get(name, {})) for name in catalogue))


def _row(name: str, entry: dict[str, object]) -> Row:
    hints = entry.get("hints", 0)
    state = ["solved"] if entry.get("solved") else []
    state += [f"{hints} of 3 hints"] if hints else []
    each = catalogue[name]
    return name, each.level, str(each.minutes), ", ".join(state), each.title
