"""Every state of every explorable: it draws, is well-formed, small, and tells the truth."""

from xml.etree import ElementTree

import pytest

from cpcore.ui import catalogue
from cpcore.ui.svg import FONT
from tests.support.drawn import drawn_states
from tests.support.explorables import CHECKS

# One state with its tables, before lines are shared between states.
MAX_DRAWN_BYTES = {
    "schedule-explorer": 23_000,  # eight ranks: 64 score blocks, each twice
    "laboratory": 12_000,  # nine tables
}
OTHERS_MAX_DRAWN_BYTES = 9_000
NAMES = sorted(catalogue)


def test_the_catalogue_holds_the_explorables_under_their_names():
    assert NAMES == [
        "bill-explorer",
        "calculator",
        "laboratory",
        "loss-explorer",
        "merge-order",
        "merge-stepper",
        "network-lab",
        "schedule-explorer",
        "split-explorer",
    ]
    assert set(CHECKS) == set(NAMES)
    assert all(entry.name == name for name, entry in catalogue.items())


@pytest.mark.parametrize("name", NAMES)
def test_every_state_shows_a_table_that_equals_a_recomputation(name):
    for state, (caption, *parts) in drawn_states(name):
        try:
            CHECKS[name](state, caption, "\n".join(parts))
        except AssertionError as error:
            raise AssertionError(f"{name} {state}: {error}") from error


@pytest.mark.parametrize("name", NAMES)
def test_every_state_is_well_formed_small_and_has_alt_text_on_every_picture(name):
    most = MAX_DRAWN_BYTES.get(name, OTHERS_MAX_DRAWN_BYTES)
    for state, lines in drawn_states(name):
        drawn = "\n".join(lines)
        root = ElementTree.fromstring(f"<div>{drawn}</div>")
        pictures = list(root.iter("svg"))
        assert len(pictures) == 2, state
        for picture in pictures:
            assert picture.get("role") == "img"
            assert len(picture.get("aria-label", "")) > 20, state
        assert len(drawn.encode()) <= most, state
        assert len(list(root.iter("details"))) == 1, state


@pytest.mark.parametrize("name", NAMES)
def test_no_state_needs_an_id_a_style_or_a_script(name):
    for state, lines in drawn_states(name):
        for node in ElementTree.fromstring(f"<div>{''.join(lines)}</div>").iter():
            assert node.tag not in ("script", "style", "a", "foreignObject"), state
            assert not {"id", "style", "class"} & {*node.attrib} or node.get("class") in (
                "cp-table",
                "cp-note",
            ), state
            assert not any(key.startswith("on") for key in node.attrib), state


@pytest.mark.parametrize("name", NAMES)
def test_letters_survive_a_phone(name):
    """Where a 360 px phone leaves 302 px for a panel, no letter is smaller than 12 px."""
    for _, lines in drawn_states(name):
        root = ElementTree.fromstring(f"<div>{''.join(lines)}</div>")
        for picture in root.iter("svg"):
            assert float(picture.get("viewBox", "").split()[2]) <= 330
            assert all(
                float(node.get("font-size", FONT)) >= 12 * 330 / 302 for node in picture.iter()
            )


@pytest.mark.parametrize("name", NAMES)
def test_the_caption_is_one_line(name):
    for state, (caption, *_) in drawn_states(name):
        assert caption.startswith("<p>"), state
        assert caption.endswith("</p>"), state
        assert len(caption) < 260, state


def test_the_default_state_of_the_network_lab_is_the_worked_one():
    caption, *_ = catalogue["network-lab"].lines(step=3, guess="0.8")
    assert "sigmoid(1.5) = 0.818" in caption
    assert "You predicted above 0.8" in caption
    assert "right" in caption


def test_the_split_explorer_shows_all_three_verdicts():
    """Wrong, right by accident and right for every V, with the numbers of an earlier example."""
    split = catalogue["split-explorer"]
    assert "wrong" in split.lines()[0]
    assert "accident" in split.lines(split="2-2-4", scores="uniform", values="alternating")[0]
    assert "every V" in split.lines(scores="equal-masses")[0]


def test_overflow_without_a_maximum_shows_in_float32_and_not_in_float64():
    merge = catalogue["merge-stepper"]
    assert "inf" in merge.lines(preset="overflow", precision="float32", step=5)[0]
    assert "inf" not in merge.lines(preset="overflow", precision="float64", step=5)[0]
