"""Hints open one at a time; what is solved is kept, carried and forgotten."""

import json
from html import escape
from pathlib import Path

import pytest

from cpcore.exercises import begin, catalogue, hint, overview, progress, starter, submit
from cpcore.exercises.sources import function, solution

NAME = "merge_chunk_stats"


def test_hints_open_in_order_and_stay_open() -> None:
    texts = catalogue[NAME].hints
    for count in (1, 2, 3, 3):
        assert hint(NAME).opened == texts[:count]
        assert progress.hints_open(NAME) == count
    assert escape(texts[2]) in hint(NAME)._repr_html_()


def test_only_an_accepted_answer_is_kept_as_solved() -> None:
    submit(NAME, function(NAME, starter(NAME), "starter"))
    assert not progress.solved(NAME)
    submit(NAME, solution(NAME))
    assert progress.solved(NAME)
    submit(NAME, function(NAME, starter(NAME), "starter"))
    assert progress.solved(NAME)


def test_the_file_holds_the_documented_form(own_progress: Path) -> None:
    hint(NAME)
    submit(NAME, solution(NAME))
    assert json.loads(own_progress.read_text()) == {
        "version": 1,
        "exercises": {NAME: {"hints": 1, "solved": True}},
    }


def test_progress_is_exported_imported_and_reset() -> None:
    hint(NAME)
    submit(NAME, solution(NAME))
    carried = progress.export_text()
    assert progress.reset() == ""
    assert progress.load() == {}
    for _ in range(2):
        hint(NAME)
    progress.import_text(carried)
    assert progress.load() == {NAME: {"hints": 2, "solved": True}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version": 2, "exercises": {}}',
        '{"version": 1, "exercises": []}',
        '{"version": 1, "exercises": {"a": 1}}',
        '{"version": 1, "exercises": {"a": {"hints": 4}}}',
        '{"version": 1, "exercises": {"a": {"hints": -1}}}',
        '{"version": 1, "exercises": {"a": {"solved": 1}}}',
        '{"version": 1, "exercises": {"a": {"other": 1}}}',
    ],
)
def test_what_is_no_progress_is_refused_whole(text: str) -> None:
    hint(NAME)
    with pytest.raises(ValueError, match="expected"):
        progress.import_text(text)
    assert progress.hints_open(NAME) == 1


def test_an_unreadable_file_is_set_aside_not_overwritten(own_progress: Path) -> None:
    own_progress.parent.mkdir()
    own_progress.write_text("not ours")
    assert progress.load() == {}
    hint(NAME)
    assert progress.hints_open(NAME) == 1
    assert own_progress.with_suffix(".unreadable").read_text() == "not ours"


def test_a_folder_that_cannot_be_written_stops_no_exercise(own_progress: Path) -> None:
    own_progress.parent.write_text("a file where the folder should be")
    verdict = submit(NAME, solution(NAME))
    assert verdict.accepted
    assert "progress is not kept" in verdict.note
    assert "progress is not kept" in repr(hint(NAME))


def test_progress_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CPCORE_PROGRESS", "off")
    assert submit(NAME, solution(NAME)).note == ""
    assert overview().head() == f"0 of {len(catalogue)} exercises solved"
    assert not list(tmp_path.iterdir())


def test_the_map_shows_what_is_solved_and_which_hints_are_open() -> None:
    hint(NAME)
    submit(NAME, solution(NAME))
    shown = overview()
    assert [row[0] for row in shown.rows] == list(catalogue)
    states = {row[0]: row[3] for row in shown.rows}
    assert states.pop(NAME) == "solved, 1 of 3 hints"
    assert set(states.values()) == {""}
    assert "<td>solved, 1 of 3 hints</td>" in shown._repr_html_()


def test_the_clock_of_an_exercise_is_told_by_submit() -> None:
    assert begin(NAME) == starter(NAME)
    assert "of 15 minutes since begin" in submit(NAME, solution(NAME)).note


def test_without_a_name_the_file_lies_in_the_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CPCORE_PROGRESS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert progress.path() == tmp_path / "cpcore" / "progress.json"
    monkeypatch.setattr(progress.sys, "platform", "win32")
    monkeypatch.setenv("APPDATA", str(tmp_path / "roaming"))
    assert progress.path() == tmp_path / "roaming" / "cpcore" / "progress.json"
