"""The calculator's bars, its card for other numbers, and what it refuses."""

import re
from xml.etree import ElementTree

import pytest

from cpcore.planner import HARDWARE, MODELS
from cpcore.ui import calculator
from cpcore.ui.calculator import PLAN_NAMES, cost_card
from cpcore.ui.calculator_facts import PLANS
from cpcore.ui.figure import Figure
from tests.support.errors import refused
from tests.support.explorables import tables

SAMPLE = list(calculator.states())[::37]
LLAMA, H100 = MODELS["Llama 3.1 8B"], HARDWARE["H100"]


def value_of(text: str) -> float:
    return float(text.replace(",", ""))


def bars(picture: ElementTree.Element) -> dict[str, tuple[float, float, bool]]:
    """Name above a bar -> its length, the number behind it, whether it is an outline."""
    texts = [(float(t.get("y", 0)), t.text or "") for t in picture.iter("text")]
    found = {}
    for rect in picture.iter("rect"):
        y = float(rect.get("y", 0))
        name = next(text for at, text in texts if at == y - 4)
        number = next(text for at, text in texts if at == y + 12)
        found[name] = (float(rect.get("width", 0)), value_of(number), rect.get("fill") == "none")
    return found


@pytest.mark.parametrize("state", SAMPLE, ids=str)
def test_bars_are_as_long_as_the_numbers_behind_them_and_these_are_in_the_table(state):
    _, *parts = calculator.lines(**state)
    root = ElementTree.fromstring(f"<div>{''.join(parts)}</div>")
    pictures, (memory, layer) = list(root.iter("svg")), tables("\n".join(parts))
    for picture in pictures:
        drawn = bars(picture)
        longest = max((number for _, number, _ in drawn.values()), default=0)
        for length, number, _ in drawn.values():
            assert length == pytest.approx(250 * number / longest, abs=0.5 + 250 * 0.01)
    first, second = map(bars, pictures)
    for name, row in memory.items():
        assert first[name][1] == value_of(row["fullest rank"])
    total = sum(number for name, (_, number, outline) in first.items() if not outline)
    assert first["total of a rank"][1] == pytest.approx(total, rel=0.01)
    for name, (_, number, _) in second.items():
        assert number == value_of(layer[f"{name}, ms"]["value"])
    if second:
        parts_ms = [n for _, n, outline in second.values() if not outline][:3]
        assert second["total"][1] == pytest.approx(sum(parts_ms), rel=0.02)


def test_a_card_takes_numbers_that_the_grid_does_not_have():
    card = cost_card(LLAMA, H100, seq_len=96 * 1024, cp_size=4, utilization=0.5, state_shards=8)
    assert isinstance(card, Figure)
    text = card._repr_html_()
    assert "96" not in dict(calculator.controls[2].options)
    memory, layer = tables(text)
    assert layer["tokens of a rank"]["value"] == "24,576"
    assert memory["weights"]["fullest rank"] == f"{2 * LLAMA.parameters / 8 / 2**30:.3g}"
    work = 4 * (98_304 * 98_305 / 2) * 4096 / 4 / (0.5 * 989e12) * 1e3
    assert layer["useful compute, ms"]["value"] == f"{work:.3g}"


def test_the_stored_state_and_the_card_of_the_same_numbers_agree():
    stored = calculator.draw()
    shown = cost_card(LLAMA, H100, seq_len=131_072, cp_size=8)._repr_html_()
    assert shown == f'<div class="cp-figure">\n{stored}\n</div>'


def test_a_plan_that_the_heads_forbid_says_so_and_shows_no_time():
    caption, _, *rest = calculator.lines(plan="all_to_all", ranks="64", model="Llama 3.1 8B")
    assert "64 ranks cannot trade 32 query and 8 key heads" in caption
    assert "The heads do not split this way." in "".join(rest)
    assert not re.search(r", ms</th>", "".join(rest))


def test_every_plan_has_a_name_and_every_limit_is_reached_somewhere():
    assert list(PLAN_NAMES) == list(PLANS)
    captions = [calculator.lines(**state)[0] for state in SAMPLE]
    for limit in ("compute", "imbalance", "communication"):
        assert any(f"The limit is {limit}." in caption for caption in captions)
    assert any("outlasts" in c for c in captions)
    assert any("does not fit" in c for c in captions)


def test_an_unknown_plan_is_refused():
    names = ", ".join(PLANS)
    with refused("plan", f"one of {names}", "'star'"):
        cost_card(LLAMA, H100, seq_len=1024, cp_size=2, plan="star")


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(
    ("argument", "wanted", "wrong"),
    [
        ("model", "a ModelShape", "8B"),
        ("machine", "a Hardware", None),
        ("cp_size", "an integer of at least 1", 1.5),
        ("cp_size", "an integer of at least 1", "8"),
        ("seq_len", "an integer of at least 1", 0),
        ("utilization", "a finite number above 0", "half"),
        ("state_shards", "an integer of at least 1", []),
    ],
)
def test_a_card_refuses_what_is_no_size_whatever_the_plan(plan, argument, wanted, wrong):
    good = {"model": LLAMA, "machine": H100, "seq_len": 131_072, "cp_size": 64, "plan": plan}
    with refused(argument, wanted, repr(wrong)):
        cost_card(**(good | {argument: wrong}))


def test_a_plan_may_be_anything_and_is_still_refused_by_name():
    with refused("plan", f"one of {', '.join(PLANS)}", "['ring']"):
        cost_card(LLAMA, H100, seq_len=1024, cp_size=2, plan=["ring"])
