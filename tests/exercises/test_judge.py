"""What the judge says about answers that do strange things, and about good ones."""

import functools
import signal
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from cpcore import merge_chunk_stats as core_merge
from cpcore.exercises import calls as guarded_calls
from cpcore.exercises import judge, run, submit
from cpcore.exercises.results import Verdict

Stats = Any


def good(acc: Stats, chunk: Stats) -> Any:
    top = np.maximum(acc.max, chunk.max)
    a, b = np.exp(acc.max - top), np.exp(chunk.max - top)
    return a[..., None] * acc.output + b[..., None] * chunk.output, a * acc.sum + b * chunk.sum, top


def said(verdict: Verdict) -> str:
    assert verdict.failure is not None
    return verdict.failure.what


def judged(answer: Any) -> Verdict:
    return judge(answer, "merge_chunk_stats")


def test_the_name_of_the_function_finds_the_exercise() -> None:
    def merge_chunk_stats(acc: Stats, chunk: Stats) -> Any:
        return good(acc, chunk)

    assert judge(merge_chunk_stats)


def test_the_core_itself_is_accepted() -> None:
    assert judged(core_merge)


def test_a_method_a_partial_and_an_object_are_judged_like_a_function() -> None:
    class Merger:
        def merge(self, acc: Stats, chunk: Stats) -> Any:
            return good(acc, chunk)

        def __call__(self, acc: Stats, chunk: Stats) -> Any:
            return good(acc, chunk)

    for answer in (Merger().merge, Merger(), functools.partial(good)):
        verdict = judged(answer)
        assert verdict
        assert verdict.cost is not None
        assert verdict.cost.lines >= 1


CATCHING = "while True:\n  try: 1 / 0\n  except Exception: pass"

SWALLOWING = "while True:\n  try: 1 / 0\n  except: pass"  # all of it, but not at every step


@pytest.mark.parametrize("body", ["while True: pass", "while True:\n  x = 1", CATCHING, SWALLOWING])
def test_an_endless_loop_is_stopped_and_named(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_calls, "LIMIT_S", 0.2)
    space: dict[str, Any] = {}
    exec("def loop(acc, chunk):\n " + body.replace("\n", "\n "), space)
    before = time.monotonic()
    assert "endless loop" in said(judged(space["loop"]))
    assert sys.exception() is None  # or later errors would seem to follow from the loop's
    assert time.monotonic() - before < 20  # one call is stopped, the other claims are not tried


def test_a_stopped_call_leaves_no_error_in_handling_behind() -> None:
    space: dict[str, Any] = {}
    exec("def loop():\n " + SWALLOWING.replace("\n", "\n "), space)
    for _ in range(20):  # the clock decides at which step it is stopped
        outcome = guarded_calls.guarded(space["loop"], limit_s=0.01, space=space)
        assert "endless loop" in outcome.error
        assert sys.exception() is None


def test_an_answer_may_raise_stop_iteration() -> None:
    outcome = guarded_calls.guarded(lambda: next(iter(())))
    assert outcome.error == "it raised StopIteration"


def test_a_rank_that_does_not_let_go_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_calls, "LIMIT_S", 0.2)

    def clinging(rank: int, cp_size: int, q: Any, k: Any, *rest: Any) -> Any:
        try:
            while True:
                yield k
        finally:
            while not released:
                pass

    released: list[bool] = []
    timer = threading.Timer(10, lambda: released.append(True))
    timer.start()
    began = time.monotonic()
    verdict = judge(clinging, "ring_backward")
    timer.cancel()
    assert "ran longer" in said(verdict)
    assert time.monotonic() - began < 5


def test_the_trace_function_of_others_is_back_after_a_call() -> None:
    def mine(frame: Any, event: str, arg: Any) -> None:
        return None

    old = sys.gettrace()
    sys.settrace(mine)
    try:
        guarded_calls.guarded(lambda: 1)
        assert sys.gettrace() is mine
    finally:
        sys.settrace(old)


def test_an_alarm_of_others_still_rings_after_a_call() -> None:
    rung: list[int] = []
    old = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        guarded_calls.guarded(lambda: 1)
        time.sleep(0.2)
        assert rung == [signal.SIGALRM]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_a_call_outside_of_the_main_thread_is_judged_too() -> None:
    said: list[bool] = []
    worker = threading.Thread(target=lambda: said.append(bool(judged(good))))
    worker.start()
    worker.join()
    assert said == [True]


def test_an_error_names_the_line_of_the_reader() -> None:
    def broken(acc: Stats, chunk: Stats) -> Any:
        return acc.output + undefined  # type: ignore[name-defined]  # noqa: F821

    told = said(judged(broken))
    assert "NameError" in told
    assert "return acc.output + undefined" in told


def test_a_call_of_exit_does_not_end_the_judge() -> None:
    assert "called exit" in said(judged(lambda acc, chunk: sys.exit()))


class Odd:
    """An object that refuses to be printed, and an error that refuses to speak."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


class LastError(BaseException):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def raising(error: BaseException) -> Any:
    def answer(acc: Stats, chunk: Stats) -> Any:
        raise error

    return answer


def nested() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize("error", [LastError(), GeneratorExit(), ValueError("x" * 10_000)])
def test_every_error_is_told_in_a_short_line(error: BaseException) -> None:
    what = said(judged(raising(error)))
    assert f"raised {type(error).__name__}" in what
    assert len(what) < 300
    assert type(error).__name__ in repr(run("merge_chunk_stats", raising(error)))


def test_an_interrupt_of_the_reader_still_stops_everything() -> None:
    with pytest.raises(KeyboardInterrupt):
        judged(raising(KeyboardInterrupt()))


@pytest.mark.parametrize("make", [Odd, nested, lambda: 10**5000, lambda: {"sum": Odd()}])
def test_a_result_that_cannot_be_shown_is_refused_in_words(make: Any) -> None:
    assert "a plain value, but it raised" in said(judged(lambda acc, chunk: make()))
    assert "a plain value, but it raised" in repr(run("merge_chunk_stats", lambda a, b: make()))


def test_a_masked_array_cannot_hide_its_elements() -> None:
    def hiding(acc: Stats, chunk: Stats) -> Any:
        return tuple(np.ma.masked_all(part.shape) for part in acc)

    assert "a MaskedArray of shape (1, 1)" in said(judged(hiding))
    assert not run("merge_chunk_stats", hiding)


def test_what_an_answer_assigns_in_numpy_is_put_back() -> None:
    exp, deep = np.exp, sys.getrecursionlimit()

    def patching(acc: Stats, chunk: Stats) -> Any:
        np.exp = np.ones_like  # type: ignore[assignment]
        sys.setrecursionlimit(deep + 1)
        return good(acc, chunk)

    try:
        judged(patching)
        run("merge_chunk_stats", patching)
        assert np.exp is exp
        assert sys.getrecursionlimit() == deep
    finally:
        np.exp = exp
        sys.setrecursionlimit(deep)


def test_an_answer_that_comes_too_late_ends_the_judging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_calls, "LIMIT_S", 0.2)
    calls = []

    def late(acc: Stats, chunk: Stats) -> Any:
        """Untraced, and past the limit but before the alarm."""
        calls.append(1)
        sys.settrace(None)
        time.sleep(0.25)
        return good(acc, chunk)

    verdict = judged(late)
    assert "ran longer than 0.2 seconds" in said(verdict)
    assert verdict.held == 0
    assert len(calls) == 1
    ran = run("merge_chunk_stats", late)
    assert len(ran.examples) == 1, "the next example would take as long"


def test_a_wrong_number_of_arguments_is_an_error_in_words() -> None:
    assert "TypeError" in said(judged(lambda acc: acc))


def test_what_an_answer_prints_is_kept_apart_and_cut_short() -> None:
    def loud(acc: Stats, chunk: Stats) -> Any:
        print("x" * 100_000)
        return good(acc, chunk)

    verdict = judged(loud)
    assert verdict.accepted
    assert verdict.printed == "x" * guarded_calls.PRINTED
    assert "printed" in repr(run("merge_chunk_stats", loud))


def test_a_changed_argument_is_named() -> None:
    def greedy(acc: Stats, chunk: Stats) -> Any:
        result = good(acc, chunk)
        chunk.sum[...] = 0
        return result

    assert "changed its argument chunk" in said(judged(greedy))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda r: None, "yours None"),
        (lambda r: r[0], "a tuple of 3 (output, sum, max)"),
        (lambda r: r[:2], "yours 2 elements, expected 3"),
        (lambda r: (r[0].tolist(), *r[1:]), "output: yours a list"),
        (lambda r: (r[0][..., 0], *r[1:]), "output: yours shape (1,), expected shape (1, 1)"),
        (lambda r: (r[0].astype("float32"), *r[1:]), "output: yours dtype float32"),
        (lambda r: (r[0].astype(int), *r[1:]), "output: yours dtype int64"),
        (lambda r: (x for x in r), "a generator"),
        (lambda r: (r[0] * np.nan, *r[1:]), "output[0, 0]: yours nan, expected 16"),
        (lambda r: (r[0], r[1] + 1e-6, r[2]), "sum[0]"),
    ],
)
def test_a_result_of_the_wrong_form_is_told_in_words(change: Any, word: str) -> None:
    assert word in said(judged(lambda acc, chunk: change(good(acc, chunk))))


def test_an_invalid_operation_on_the_way_is_told_where_a_claim_forbids_it() -> None:
    def careless(acc: Stats, chunk: Stats) -> Any:
        np.array([0.0]) / np.array([0.0])
        return good(acc, chunk)

    assert "invalid" in said(judged(careless))


def test_a_failure_shows_the_smallest_input_and_names_a_known_mistake() -> None:
    def as_they_are(acc: Stats, chunk: Stats) -> Any:
        return acc.output + chunk.output, acc.sum + chunk.sum, np.maximum(acc.max, chunk.max)

    verdict = judged(as_they_are)
    assert verdict.failure is not None
    assert verdict.failure.call == (
        "acc = output [[4]], sum [1], max [1.099]\nchunk = output [[8]], sum [1], max [0]"
    )
    assert "added as they are" in verdict.failure.meaning


def test_run_shows_both_results_the_first_difference_and_a_trace() -> None:
    def halved(acc: Stats, chunk: Stats) -> Any:
        output, total, top = good(acc, chunk)
        half = total / 2
        return output, half, top

    result = run("merge_chunk_stats", halved)
    assert not result
    first = result.examples[0]
    assert first.what == "sum[0]: yours 2.5, expected 5"
    assert first.yours == "output [[16]], sum [2.5], max [0]"
    assert "half = total / 2" in result.trace
    assert "half = [2.5]" in result.trace


def test_texts_of_results_are_escaped_in_html() -> None:
    def loud(acc: Stats, chunk: Stats) -> Any:
        print("<img src=x>")
        raise ValueError("<script>")

    for result in (judged(loud), run("merge_chunk_stats", loud)):
        html = result._repr_html_()
        assert "<img" not in html
        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_an_accepted_answer_is_told_its_cost_beside_the_model() -> None:
    verdict = judged(good)
    text = repr(verdict)
    assert "lines                4 (model 6)" in text or "lines" in text
    assert verdict.cost is not None
    assert verdict.cost.lines == 3
    assert verdict.cost.reads is not None
    assert "temporary memory" in text


def test_reads_count_how_often_the_inputs_are_read() -> None:
    def twice(acc: Stats, chunk: Stats) -> Any:
        good(acc, chunk)
        return good(acc, chunk)

    once, again = judged(good).cost, judged(twice).cost
    assert once is not None
    assert again is not None
    assert again.reads == pytest.approx(2 * (once.reads or 0))


def test_temporary_memory_grows_with_what_is_held() -> None:
    def hoarding(acc: Stats, chunk: Stats) -> Any:
        np.ones((64, *acc.output.shape))
        return good(acc, chunk)

    lean, fat = judged(good).cost, judged(hoarding).cost
    assert lean is not None
    assert fat is not None
    assert fat.temporary_bytes > lean.temporary_bytes + 60 * 8 * 512 * 64


def test_what_is_no_function_or_no_exercise_is_one_error() -> None:
    with pytest.raises(ValueError, match="answer: expected the function"):
        judge(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="name: expected one of"):
        judge(good)
    with pytest.raises(ValueError, match="name: expected one of"):
        run("nothing", good)
    with pytest.raises(ValueError, match="name: expected one of"):
        submit("nothing", good)
