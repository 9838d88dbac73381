"""The quizzes: their form, numbers and links, and that nothing but thought gives a hint."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
import pytest

from cpcore.ui import quiz
from cpcore.ui.quiz import slug
from cpcore.ui.quiz_data import Question, chapters, parse
from scripts import notebooks
from tests.support import chapters as rules
from tests.support import quizzes

PATHS = [path for path in notebooks.paths() if path.name[:2] != "12"]  # that one is all exercises
QUESTIONS = quizzes.everything()
IDS = [f"{chapter}-{question.id}" for chapter, question in QUESTIONS]
# (chapter, question): what tutorials get wrong, and where it is asked.
MISSTATEMENTS = {
    "early ranks carry the heavy causal load": ("08", "early"),
    "all-to-all traffic does not depend on S": ("09", "trade"),
    "attention memory per rank is S²/R²": ("09", "tile"),
    "context parallelism needs NCCL": ("04", "library"),
    "lse values add": ("03", "add-lse"),
    # The common mistakes of an interview
    "it is sparse attention, and quadratic work goes away": ("01", "sparse"),
    "a separate softmax per block will do": ("02", "every-v"),
    "a rank can do with its own keys": ("01", "alone"),
    "local numbers are enough for a causal mask": ("05", "from-zero"),
    "groups may be combined without looking at the topology": ("09", "tensor"),
}
all_questions = pytest.mark.parametrize(("chapter", "question"), QUESTIONS, ids=IDS)


def test_every_chapter_has_a_quiz_of_at_least_five_questions() -> None:
    assert list(chapters()) == [path.stem for path in PATHS]
    counts = Counter(chapter for chapter, _ in QUESTIONS)
    assert min(counts[name[:2]] for name in chapters()) >= 5


def test_public_misstatements_and_common_mistakes_are_asked() -> None:
    asked = {(chapter, question.id) for chapter, question in QUESTIONS}
    assert set(MISSTATEMENTS.values()) <= asked


@all_questions
def test_every_fact_holds(chapter: str, question: Question) -> None:
    assert [fact for fact in question.facts if not quizzes.holds(fact)] == []


@all_questions
def test_every_number_is_named_by_a_fact(chapter: str, question: Question) -> None:
    assert quizzes.unbacked(question) == []


@all_questions
def test_the_section_that_settles_it_is_in_the_chapter(chapter: str, question: Question) -> None:
    path = next(path for path in PATHS if path.name.startswith(chapter))
    headings = [text for _, text in rules.headings(nbformat.read(path, as_version=4))]
    assert question.section in headings
    assert [slug(text) for text in headings].count(slug(question.section)) == 1


@all_questions
def test_each_choice_is_explained_by_a_text_of_its_own(chapter: str, question: Question) -> None:
    shown = [*quizzes.texts(question)]
    assert len(set(shown)) == len(shown)
    assert all(len(choice.why.split()) >= 8 for choice in question.choices)


@all_questions
def test_lengths_of_choices_are_alike(chapter: str, question: Question) -> None:
    lengths = [len(choice.text) for choice in question.choices]
    assert max(lengths) <= 1.35 * min(lengths), lengths


def test_neither_place_nor_length_tells_the_right_choice() -> None:
    """Whoever always picks the longest, the shortest or the second does badly."""
    places, ranks = Counter(), Counter()
    for _, question in QUESTIONS:
        lengths = [len(choice.text) for choice in question.choices]
        places[question.right] += 1
        ranks[sorted(lengths).index(lengths[question.right])] += 1
    for share in (places, ranks):
        assert max(share.values()) <= 0.4 * len(QUESTIONS), share


def test_words_of_certainty_do_not_mark_the_wrong_choices() -> None:
    """A word like "always" or "never" gives a wrong choice away if right ones avoid it."""
    extreme = re.compile(r"\b(always|never|every|all|any|none|nothing)\b", re.IGNORECASE)
    right = [bool(extreme.search(c.text)) for _, q in QUESTIONS for c in q.choices if c.right]
    wrong = [bool(extreme.search(c.text)) for _, q in QUESTIONS for c in q.choices if not c.right]
    assert abs(sum(right) / len(right) - sum(wrong) / len(wrong)) < 0.15


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_quiz_of_a_chapter_is_its_last_cell_before_the_recap(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    asked = [i for i, cell in enumerate(cells) if rules.is_quiz(cell)]
    assert len(asked) == 1
    (place,) = asked
    assert cells[place].source.endswith(f'\nquiz("{path.name[:2]}")')
    after = cells[place + 1 :]
    assert [cell.cell_type for cell in after] == ["markdown"]
    assert after[0].source.startswith("## Recap\n")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_stored_quiz_is_that_of_its_file(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    (output,) = next(cell for cell in cells if rules.is_quiz(cell)).outputs
    assert output.data["text/html"] == quiz(path.name[:2]).html(), "run `make notebooks`"


# The checks themselves

GOOD = """
[[question]]
id = "one"
ask = "What?"
section = "Idea"
facts = ["1 + 1 == 2"]
[[question.choice]]
text = "a"
why = "because"
[[question.choice]]
text = "b"
why = "because"
right = true
[[question.choice]]
text = "c"
why = "because"
"""


def test_a_good_file_is_read_in_a_fixed_order() -> None:
    (question,) = parse("01", GOOD)
    assert sorted(choice.text for choice in question.choices) == ["a", "b", "c"]
    assert question.choices[question.right].text == "b"
    assert parse("01", GOOD)[0] == question
    orders = {tuple(c.text for c in parse(f"{n:02}", GOOD)[0].choices) for n in range(40)}
    assert len(orders) == 6


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('id = "one"', 'id = "One"', "id: expected words of a to z"),
        ('ask = "What?"', 'ask = " "', "one: ask: expected some text"),
        ('section = "Idea"', "", "question: keys: expected ask, choice, facts, id, section"),
        ('text = "c"', 'text = "c"\nhint = "x"', "one: choice: keys: expected right, text, why"),
        ("right = true", "", "one: right: expected one right choice, received 0"),
        ('text = "c"', 'right = true\ntext = "c"', "one: right: expected one right choice, r"),
        ("right = true", "right = 1", "one: right: expected true or false, received 1"),
        ("[[question]]", "[[questions]]", "file: keys: expected question, received questions"),
        ('[[question.choice]]\ntext = "a"\nwhy = "because"\n', "", "one: choice: expected 3 to 5"),
    ],
)
def test_a_file_that_breaks_the_form_is_refused(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        parse("01", GOOD.replace(old, new, 1))


def test_two_questions_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="id: expected a different one for each question"):
        parse("01", GOOD + GOOD)


def test_a_chapter_without_a_quiz_is_refused() -> None:
    with pytest.raises(ValueError, match=r"chapter: expected one of 01, 02, .*, received '99'"):
        quiz("99")


def test_a_new_text_has_a_new_mark_so_that_stored_answers_are_dropped() -> None:
    marks = {parse("01", text)[0].mark for text in (GOOD, GOOD.replace('"c"', '"d"'))}
    assert len(marks) == 2
    why_only = GOOD.replace("because", "since", 1)
    assert parse("01", why_only)[0].mark == parse("01", GOOD)[0].mark


def changed(text: str, *facts: str) -> Any:
    """A question that states something."""
    listed = ", ".join(f'"{fact}"' for fact in facts)
    good = GOOD.replace('"What?"', f'"{text}"').replace('["1 + 1 == 2"]', f"[{listed}]")
    return parse("01", good)[0]


@pytest.mark.parametrize(
    ("text", "facts", "missing"),
    [
        ("It is 0.82.", ["x == 0.8176"], []),
        ("It is 0.83.", ["x == 0.8176"], ["0.83"]),
        ("88% of it", ["x == 0.88"], []),
        ("88% of it", ["x == 0.8"], ["88%"]),
        ("2080 pairs", [], ["2080"]),
        ("131,072 tokens of Llama 3.1 8B on an H100", ["S > 1"], []),
        ("4 ranks and 8 keys", [], []),
    ],
)
def test_a_number_without_a_fact_is_noticed(
    text: str, facts: list[str], missing: list[str]
) -> None:
    assert quizzes.unbacked(changed(text, *facts)) == missing


def test_a_fact_must_be_a_comparison_and_true() -> None:
    assert quizzes.holds("exact_row([0, ln3], [0, 4]) == 3.0")
    assert not quizzes.holds("exact_row([0, ln3], [0, 4]) == 2.0")
    with pytest.raises(AssertionError, match="a fact is a comparison"):
        quizzes.holds("print(1)")
