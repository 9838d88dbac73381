"""What Run and Submit answer: records that read as text, as HTML, and as True or False.

Owns the wording. No number that depends on the machine is shown for an answer that fails, so a
stored notebook compares equal.
"""

from dataclasses import dataclass
from html import escape

from cpcore.exercises.cost import Cost

RIGHT, WRONG = "\N{CHECK MARK} right", "\N{BALLOT X} wrong"


@dataclass(frozen=True)
class Shown:
    """One example: the call, both results, and the first difference with its meaning."""

    title: str
    call: str
    yours: str
    expected: str
    what: str
    meaning: str
    printed: str

    @property
    def right(self) -> bool:
        """Whether the example came out as expected."""
        return not self.what

    def lines(self) -> list[tuple[str, str]]:
        """What a reader sees, as (name, text)."""
        rows = [("called with", self.call), ("yours", self.yours), ("expected", self.expected)]
        rows += [("first difference", self.what), ("meaning", self.meaning)]
        rows += [("printed", self.printed.rstrip())]
        return [(name, text) for name, text in rows if text]


@dataclass(frozen=True)
class Failure:
    """The claim that broke, and the smallest input that shows it."""

    claim: str
    call: str
    what: str
    yours: str
    meaning: str

    def lines(self) -> list[tuple[str, str]]:
        """What a reader sees, as (name, text)."""
        rows = [("claim", self.claim), ("smallest input", self.call), ("yours", self.yours)]
        rows += [("what happened", self.what), ("meaning", self.meaning)]
        return [(name, text) for name, text in rows if text]


def as_text(rows: list[tuple[str, str]]) -> str:
    """Rows as indented text; further lines of a value stand below its first."""
    width = max((len(name) for name, _ in rows), default=0)
    pad = "\n" + " " * (width + 4)
    return "\n".join(f"  {name:{width}}  {text.replace(chr(10), pad)}" for name, text in rows)


def as_table(rows: list[tuple[str, str]]) -> str:
    """Rows as a table with row headers."""
    body = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{_code(text)}</td></tr>' for name, text in rows
    )
    return f'<div class="cp-table" tabindex="0"><table>\n{body}\n</table></div>'


@dataclass(frozen=True, repr=False)
class RunResult:
    """All examples, and a trace of the first that is wrong."""

    name: str
    examples: tuple[Shown, ...]
    traced: str
    trace: str

    def __bool__(self) -> bool:
        return all(example.right for example in self.examples)

    def head(self) -> str:
        """How many examples are right."""
        right = sum(example.right for example in self.examples)
        more = " Submit tries what the examples do not show." if self else ""
        return f"{self.name}: {right} of {len(self.examples)} examples right.{more}"

    def __repr__(self) -> str:
        parts = [self.head()]
        for one in self.examples:
            parts += [f"{RIGHT if one.right else WRONG}: {one.title}", as_text(one.lines())]
        if self.trace:
            parts += [f"What your code did in {self.traced!r}:", self.trace]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(self.head())}</p>"]
        for one in self.examples:
            verdict = RIGHT if one.right else WRONG
            parts.append(f"<p>{verdict}: {escape(one.title)}</p>{as_table(one.lines())}")
        if self.trace:
            summary = f"What your code did, line by line, in: {self.traced}"
            parts.append(f"<details><summary>{escape(summary)}</summary>")
            parts.append(
                f'<div class="cp-table" tabindex="0">{_code(self.trace, "pre")}</div></details>'
            )
        return _framed(self.name, "run", parts)


@dataclass(frozen=True, repr=False)
class Verdict:
    """What all hidden tests say; true if the answer is accepted."""

    name: str
    held: int
    total: int
    failure: Failure | None
    cost: Cost | None
    model: Cost | None
    printed: str
    note: str = ""

    @property
    def accepted(self) -> bool:
        """Whether every claim holds."""
        return self.failure is None

    def __bool__(self) -> bool:
        return self.accepted

    def head(self) -> str:
        """Accepted or not, and how many claims hold."""
        word = "accepted" if self.accepted else "not accepted"
        return f"{self.name}: {word}, {self.held} of {self.total} claims hold."

    def rows(self) -> list[tuple[str, str]]:
        """The failure, or what the answer costs beside the model."""
        rows = [] if self.failure is None else self.failure.lines()
        if self.cost is not None and self.model is not None and self.accepted:
            mine, model = self.cost, self.model
            rows += [("lines", f"{mine.lines} (model {model.lines})")]
            sizes = _bytes(mine.temporary_bytes), _bytes(model.temporary_bytes)
            rows += [("temporary memory", f"{sizes[0]} (model {sizes[1]})")]
            if mine.reads is not None and model.reads is not None:
                rows += [("reads of the inputs", f"{mine.reads:.1f} (model {model.reads:.1f})")]
        if self.printed:
            rows.append(("printed", self.printed.rstrip()))
        return rows + ([("note", self.note)] if self.note else [])

    def __repr__(self) -> str:
        return "\n".join([self.head(), as_text(self.rows())]).rstrip()

    def _repr_html_(self) -> str:
        table = as_table(self.rows()) if self.rows() else ""
        parts = [f"<p>{RIGHT if self else WRONG}: {escape(self.head())}</p>", table]
        return _framed(self.name, "accepted" if self else "rejected", parts)


def _code(text: str, space: str = "pre-wrap") -> str:
    """Text whose lines stay as they are; by default long ones wrap."""
    return f'<code style="white-space: {space}">{escape(text)}</code>'


def _bytes(count: int) -> str:
    return f"{count:,} bytes" if count < 10_240 else f"{count / 1024:,.0f} KiB"


def _framed(name: str, state: str, parts: list[str]) -> str:
    """The frame by which the page finds the result of an exercise."""
    start = f'<div class="cp-result" data-exercise="{escape(name)}" data-result="{state}">'
    return "\n".join([start, *filter(None, parts), "</div>"])
