"""The page's Python shows and says what Jupyter would: text, order of outputs, errors."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter, defaultdict, namedtuple
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from IPython.lib.pretty import pretty as ipython

from cpcore.ui import catalogue, figures, split_explorer
from cpcore.ui.page import BOXES, Session
from cpcore.ui.page_errors import LIMIT
from cpcore.ui.page_output import bundle, pretty

Pair = namedtuple("Pair", "left right")
LONG = list(range(40))
ENDLESS: list[object] = [1]
ENDLESS.append(ENDLESS)


def add(x: int, y: int = 2) -> int:
    return x + y


@pytest.fixture(autouse=True)
def main() -> Iterator[None]:
    """A session puts its own module and its own keyboard in these places."""
    before, keyboard = sys.modules["__main__"], sys.stdin
    yield
    sys.modules["__main__"], sys.stdin = before, keyboard


class Cells:
    """A session and what it has sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.session = Session(lambda text: self.sent.append(json.loads(text)))
        self.number = 0

    def run(self, source: str) -> bool:
        """Run one cell; earlier outputs are forgotten, pieces of one stream joined."""
        self.sent.clear()
        self.number += 1
        return asyncio.run(self.session.run(self.number, source))

    def outputs(self) -> list[tuple[str, str]]:
        """Kind and text of each output."""
        found: list[tuple[str, str]] = []
        for output in self.sent:
            kind = output["name"] if output["kind"] == "stream" else output["kind"]
            text = output.get("text") or output["data"]["text/plain"]
            if found and found[-1][0] == kind == output.get("name"):
                text = found.pop()[1] + text
            found.append((kind, text))
        return found


@pytest.fixture
def cells() -> Cells:
    return Cells()


@pytest.mark.parametrize(
    "value",
    [
        1.5,
        "text",
        None,
        [],
        (),
        (1,),
        {},
        set(),
        frozenset({2, 1}),
        {3, 1, 2},
        {"b": 1, "a": [1, 2]},
        LONG,
        tuple(LONG),
        set(LONG),
        frozenset(LONG),
        (LONG,),
        {"first": LONG, "second": {"deep": LONG}},
        [["a" * 30, "b" * 30], ["c" * 30, "d" * 30]],
        {"key " * 9: "value " * 9},
        {"x": {"y": ["z" * 40, "w" * 40]}},
        list(range(1000)),
        list(range(1001)),
        tuple(range(1200)),
        set(range(1200)),
        dict.fromkeys(range(1200)),
        [[LONG * 30], 1],
        {"first": dict.fromkeys(range(100))},
        ["a" * 75],
        ["a" * 76],
        [["a" * 36, "b" * 36]],
        [["a" * 35, "b" * 35], 1],
        np.arange(12).reshape(3, 4),
        [np.arange(12).reshape(3, 4)],
        {"matrix": np.eye(2)},
        np.float64(0.5),
        np.float32,
        int,
        [int, np.ndarray],
        add,
        Pair(1, LONG),
        [Pair(1, 2)],
        split_explorer,
        np.exp,
    ],
    ids=lambda value: str(type(value).__name__),
)
def test_a_value_has_the_text_that_ipython_gives_it(value: object) -> None:
    assert pretty(value) == ipython(value)


def test_containers_with_a_text_of_their_own_keep_it() -> None:
    for value in (Counter("abca"), defaultdict(int, a=1)):
        assert pretty(value) == repr(value)


def test_a_list_that_holds_itself_has_a_text() -> None:
    assert bundle(ENDLESS) == {"text/plain": ipython(ENDLESS)}


def test_an_object_that_answers_to_every_name_is_shown_as_text() -> None:
    for value in (MagicMock(), MagicMock(_repr_mimebundle_=lambda **_: None)):
        assert bundle(value) == {"text/plain": repr(value)}


def test_a_figure_keeps_its_html_and_a_class_is_not_asked_for_its() -> None:
    figure = figures.ownership(4)
    assert bundle(figure) == {
        "text/plain": repr(figure),
        "text/html": figure._repr_html_(),
    }
    assert list(bundle(type(figure))) == ["text/plain"]


def test_outputs_come_in_the_order_of_the_program(cells: Cells) -> None:
    assert cells.run(
        "import sys\nprint('one')\nprint('two', file=sys.stderr)\ndisplay(3)\nprint('four')\n5"
    )
    expected = [("stdout", "one\n"), ("stderr", "two\n"), ("data", "3"), ("stdout", "four\n")]
    assert cells.outputs() == [*expected, ("data", "5")]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("1 + 1", [("data", "2")]),
        ("1 + 1;", []),
        ("(1 +\n 1) ; # nothing", []),
        ("1 + 1  # shown;", [("data", "2")]),
        ("x = 1", []),
        ("None", []),
        ("", []),
        ("# nothing", []),
        ("for i in range(2): i", []),
        ("'text'", [("data", "'text'")]),
        ("import asyncio\nawait asyncio.sleep(0, 7)", [("data", "7")]),
        ("def f(x: Missing): pass", None),  # annotations are evaluated, as in a notebook
    ],
)
def test_only_the_value_of_a_last_expression_is_shown(
    cells: Cells, source: str, shown: list[tuple[str, str]] | None
) -> None:
    assert cells.run(source) == (shown is not None)
    if shown is not None:
        assert cells.outputs() == shown


def test_cells_share_names_until_a_fresh_start(cells: Cells) -> None:
    cells.run("x = 41\nclass Kept: pass")
    assert cells.run("import pickle\npickle.loads(pickle.dumps(Kept())); x + 1")
    assert cells.outputs() == [("data", "42")]
    cells.session.fresh()
    assert not cells.run("x")


def test_an_error_shows_the_frames_of_cells_only(cells: Cells) -> None:
    cells.run("import numpy as np\ndef outer():\n    return np.linalg.inv(np.zeros((2, 2)))")
    assert not cells.run("outer()")
    ((kind, text),) = cells.outputs()
    assert kind == "error"
    assert text.split("\n")[0] == "Traceback (most recent call last):"
    assert [line for line in text.split("\n") if "File" in line] == [
        '  File "<cell 2>", line 1, in <module>',
        '  File "<cell 1>", line 3, in outer',
    ]
    assert "return np.linalg.inv(np.zeros((2, 2)))" in text
    assert text.endswith("LinAlgError: Singular matrix")


def test_a_syntax_error_names_line_and_place(cells: Cells) -> None:
    assert not cells.run("x = 1\ny = = 2")
    ((_, text),) = cells.outputs()
    assert text.startswith('  File "<cell 1>", line 2\n    y = = 2\n')
    assert text.endswith("SyntaxError: invalid syntax")


def test_an_error_that_led_to_another_is_cut_too(cells: Cells) -> None:
    assert not cells.run("import json\ntry:\n    json.loads('{')\nexcept ValueError:\n    1 / 0")
    ((_, text),) = cells.outputs()
    assert text.count("Traceback") == 2
    assert all("<cell 1>" in line for line in text.split("\n") if "File" in line)


def test_errors_of_a_group_are_cut_too(cells: Cells) -> None:
    assert not cells.run(
        "import json\ndef parse():\n    try:\n        json.loads('{')\n"
        "    except ValueError as error:\n        return error\n"
        "raise ExceptionGroup('both', [parse(), KeyError('x')])"
    )
    ((_, text),) = cells.outputs()
    assert "both (2 sub-exceptions)" in text
    assert text.count("JSONDecodeError") == 1
    assert [line.split('"')[1] for line in text.split("\n") if "File" in line] == ["<cell 1>"] * 2


def test_a_long_error_keeps_its_beginning_and_its_end(cells: Cells) -> None:
    assert not cells.run(f"raise ValueError('x' * {2 * LIMIT} + 'the end')")
    ((_, text),) = cells.outputs()
    assert text.startswith("Traceback")
    assert text.endswith("the end")
    assert len(text) < LIMIT + 100


def test_a_cell_that_asks_for_input_is_told_what_to_do(cells: Cells) -> None:
    assert not cells.run("name = input('your name? ')")
    assert cells.outputs()[-1][1].endswith("write the answer into the cell")


def test_what_was_printed_before_an_error_stays_and_exit_is_an_error(cells: Cells) -> None:
    assert not cells.run("print('so far')\nraise SystemExit")
    assert [kind for kind, _ in cells.outputs()] == ["stdout", "error"]


def test_a_missing_module_says_what_the_page_carries(cells: Cells) -> None:
    assert not cells.run("import torch_of_no_one")
    ((_, text),) = cells.outputs()
    assert text.endswith("This page carries the standard library, numpy and cpcore.")


def test_a_flood_of_text_is_cut_and_the_next_cell_prints_again(cells: Cells) -> None:
    assert cells.run("for i in range(50_000):\n    print(i, 'x' * 20)")
    ((_, text),) = cells.outputs()
    assert LIMIT < len(text) < LIMIT + 100
    assert text.endswith(f"the page shows the first {LIMIT:,} characters\n")
    assert len(cells.sent) < 1000  # not one message per line
    cells.run("print('again')")
    assert cells.outputs() == [("stdout", "again\n")]


FULL = f"... the page shows the first {BOXES - 1:,} outputs\n"


@pytest.mark.parametrize(
    "flood", ["display(1)", "print('a'); print('b', file=sys.stderr)", "display(1); print('c')"]
)
def test_a_flood_of_outputs_is_cut_and_the_next_cell_shows_its_own(
    cells: Cells, flood: str
) -> None:
    """Each output is a box of the page; thousands would stall it, and Stop with it."""
    assert cells.run(f"import sys\nfor i in range(2000): {flood}\nprint('lost')\n5")
    assert BOXES - 1 <= len(cells.outputs()) <= BOXES
    assert len(cells.sent) < 2 * BOXES
    assert cells.sent[-1]["text"] == FULL
    assert not cells.run(f"for i in range(2000): {flood}\n1 / 0")
    assert cells.outputs()[-1][1].endswith("division by zero"), "an error is always shown"
    cells.run("display(1)\n2")
    assert cells.outputs() == [("data", "1"), ("data", "2")]


def test_a_long_result_is_cut(cells: Cells) -> None:
    assert cells.run(f"display('x' * {2 * LIMIT})\n'y'")
    ((_, text),) = cells.outputs()
    assert text == f"'{'x' * (LIMIT - 1)}\n... the page shows the first {LIMIT:,} characters\n"


def test_the_cut_is_said_while_the_cell_still_runs(cells: Cells) -> None:
    sent = cells.sent
    cells.session._space["last"] = lambda: str(sent[-1])
    assert cells.run(f"for i in range({LIMIT}): print('x')\nassert 'shows the first' in last()")
    assert cells.run(f"for i in range({BOXES}): display(1)\nassert 'shows the first' in last()")


def test_what_is_printed_leaves_at_once(cells: Cells) -> None:
    """Or a Stop, which ends everything, would lose it."""
    sent = cells.sent
    cells.session._space["seen"] = lambda: "".join(output.get("text", "") for output in sent)
    assert cells.run("print('one')\nassert seen() == 'one\\n'\nprint('two', end='')\n"
                     "assert seen() == 'one\\ntwo'")  # fmt: skip


def test_a_picture_of_an_explorable_is_drawn_as_its_lines(cells: Cells) -> None:
    state = split_explorer.defaults() | {"scores": "future"}
    drawn = json.loads(cells.session.draw("split-explorer", json.dumps(state)))
    assert drawn == list(split_explorer.lines(**state))


def test_a_shown_explorable_of_the_reader_is_drawn_by_its_own_code(cells: Cells) -> None:
    cells.run(
        "from dataclasses import replace\nfrom cpcore.ui import split_explorer\n"
        "mine = replace(split_explorer, drawing=lambda **state: ('mine', '<p>own</p>'))"
    )
    values = json.dumps(split_explorer.defaults())
    assert json.loads(cells.session.draw("split-explorer", values))[0] != "mine"
    cells.run("mine")
    assert json.loads(cells.session.draw("split-explorer", values)) == ["mine", "<p>own</p>"]
    assert catalogue["split-explorer"] is split_explorer


def test_open_figures_of_matplotlib_are_shown_after_the_cell(cells: Cells) -> None:
    assert cells.run("import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])\nprint('drawn')")
    assert cells.outputs()[0] == ("stdout", "drawn\n")
    assert cells.sent[-1]["data"]["image/png"].startswith("iVBOR")
    assert cells.run("1")
    assert cells.outputs() == [("data", "1")]
