"""What the judge says to mistakes that a first reader made: the message names the mistake."""

from typing import Any

import pytest

from cpcore.exercises import begin, catalogue, judge, progress, run, specification, submit
from cpcore.exercises.sources import function, given_functions, model_source, solution

OWN_HOME = "        block = yield k_in, v_in, dk, dv\n"


def changed(name: str, *edits: tuple[str, str]) -> Any:
    """The solution after replacements that each fit once."""
    source = model_source(name)
    for old, new in edits:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return function(name, source, "reader")


def told(name: str, *edits: tuple[str, str]) -> str:
    """The failure as a reader sees it."""
    verdict = judge(changed(name, *edits), name)
    assert verdict.failure is not None, "accepted"
    return repr(verdict)


BY_THE_PACKAGE = (
    ("        keep, weights = ", "        cpcore.finalize\n        keep, weights = "),
    ("import numpy as np\n", "import cpcore\nimport numpy as np\n"),
)


def test_the_capstone_may_not_call_the_package() -> None:
    said = told("causal_ring", *BY_THE_PACKAGE)
    assert "No call of the package" in said
    assert "your code uses cpcore of the package" in said
    inside = (
        "    scale, here =",
        "    from cpcore import chunks as c\n    c.finalize\n    scale, here =",
    )
    assert "No call of the package" in told("causal_ring", inside)
    assert judge(changed("sink_attention")), "elsewhere the package is given"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("causal_ring", "k *= 0"),
        ("causal_ring", "k *= 1.0001"),
        ("causal_ring", "positions[0][:] = 0"),
        ("ring_backward", "lse += 1"),
    ],
)
def test_a_rank_that_changes_its_argument_in_place_is_told_which(name: str, change: str) -> None:
    argument = change.split()[0].split("[")[0]
    source = model_source(name)
    line = next(row for row in source.split("\n") if row.startswith("    return "))
    said = told(name, (line, f"    {change}\n{line}"))
    assert f"rank 0 changed its argument {argument}; write the result into a new array" in said


def test_a_skipped_message_is_blamed_on_the_hop_and_not_on_an_innocent_line() -> None:
    said = told(
        "causal_ring",
        ("if step < cp_size - 1:", "if step < cp_size - 1 and np.isfinite(scores).any():"),
    )
    assert "in hop 2 rank 0 sends 4 arrays and rank 1 sends 2" in said
    assert "still passes its message on" in said
    assert "ValueError" not in said


NAMED = [
    ("causal_ring", "not sent the last hop home",
     ((OWN_HOME, "        block = k_in, v_in, dk, dv\n        if step + 1 < cp_size:\n"
       "            block = yield block\n"),)),
    ("causal_ring", "instead of the whole row's",
     (("delta[:, None]", "(dout * (probs @ v_in)).sum(1)[:, None]"),)),
    ("causal_ring", "own keys in every step",
     (("probs = np.exp(scores_with(k_in, step)", "probs = np.exp(scores_with(k, step)"),)),
    ("block_backward", "not divided by √D", (("scale = q.shape[1] ** -0.5", "scale = 1"),)),
    ("block_backward", "dk and dv change places",
     (("dscores.T @ q * scale, probs.T @ dout", "probs.T @ dout, dscores.T @ q * scale"),)),
    ("zigzag", "permutation and inverse change places",
     (("return permutation, np.argsort(permutation)",
       "return np.argsort(permutation), permutation"),)),
    ("dropout_chunk_stats", "counts only the kept weights",
     (("weights.sum(axis=1), top", "(weights * (state >= rate * 2**32)).sum(axis=1), top"),)),
    ("sink_attention", "relative to the maximum",
     (("    out, lse = cpcore.finalize(acc)\n",
       "    acc = parts[0]\n    for part in parts[1:]:\n"
       "        acc = cpcore.merge_chunk_stats(acc, part)\n"
       "    total = acc.sum + np.exp(sink)\n"
       "    out, lse = acc.output / total[:, None], np.log(total)\n"),)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "words", "edits"), NAMED)
def test_a_mistake_that_a_reader_made_has_its_name(name: str, words: str, edits: Any) -> None:
    assert words in told(name, *edits)
    assert words in repr(run(name, changed(name, *edits))), "Run names it as well"


def test_the_rule_of_four_extremes_is_named() -> None:
    source = (
        "def window_verdict(q_pos, k_pos, window):\n"
        "    if not len(q_pos) or not len(k_pos):\n        return 'empty'\n"
        "    least, most = q_pos.min() - k_pos.max(), q_pos.max() - k_pos.min()\n"
        "    if most < 0 or least >= window:\n        return 'empty'\n"
        "    return 'full' if least >= 0 and most < window else 'partial'\n"
    )
    answer = function("window_verdict", source, "reader")
    assert "four extreme positions" in repr(judge(answer))


def test_no_constant_passes_run_of_the_window() -> None:
    for word in ("full", "partial", "empty"):
        assert not run("window_verdict", lambda q_pos, k_pos, window, word=word: word)


def test_an_invalid_operation_behind_a_right_result_is_told_with_its_line() -> None:
    said = told(
        "block_backward",
        ("    safe = np.where(np.isneginf(lse), 0, lse)\n", "    safe = lse\n"),
        ("np.exp(scores - safe[:, None])", "np.nan_to_num(np.exp(scores - safe[:, None]))"),
    )
    assert "the result is right, but" in said
    assert "invalid value in line" in said
    assert "probs = np.nan_to_num(np.exp(" in said
    assert "No operation may be invalid" in " ".join(specification("block_backward").split())


def test_a_scalar_of_the_wrong_type_shows_its_value() -> None:
    said = told("ring_step", ("if step > 0 else None", "if step >= 0 else None"))
    assert "recv_from: yours 1, an int, expected None" in said


def test_summaries_in_a_list_stand_in_brackets() -> None:
    said = repr(run("sink_attention", solution("sink_attention")))
    assert "parts = [(output [[" in said


def test_the_arguments_of_a_ring_are_named_as_the_answer_names_them() -> None:
    said = repr(run("causal_ring", solution("causal_ring")))
    assert "each rank has its part of" in said
    assert "positions = [[0], [1]]" in said


def test_lines_that_the_starter_gives_are_not_counted() -> None:
    assert given_functions("dropout_chunk_stats") == {"mix"}
    cost = judge(solution("dropout_chunk_stats")).cost
    assert cost is not None
    assert cost.lines == 7


def test_a_solved_exercise_stops_its_clock() -> None:
    begin("ring_step")
    assert "minutes since begin" in submit("ring_step", solution("ring_step")).note
    assert "minutes since begin" not in submit("ring_step", solution("ring_step")).note
    assert progress.solved("ring_step")
    assert catalogue["ring_step"].minutes


def traced(name: str, body: str) -> list[str]:
    answer = function(name, body, "reader")
    return repr(run(name, answer)).split("line by line")[-1].split("\n")


TRACED = """
import numpy as np
def zigzag(seq_len, cp_size):
    order = []
    order.extend([0, 3, 1, 2])
    permutation = np.array(order)
    inverse = np.empty_like(permutation)
    inverse[permutation] = np.arange(4)
    permutation += 0 * permutation + 0 * permutation + 0 * permutation
    permutation -= 1
    return permutation, inverse
"""


def test_the_trace_shows_what_changes_in_place_and_no_left_over_numbers() -> None:
    rows = {row.split("  ")[1].strip() if row.startswith("      ") else row.strip(): row
            for row in traced("zigzag", TRACED)}  # fmt: skip
    text = "\n".join(rows.values())
    assert "order = [0, 3, 1, 2]" in text
    assert "inverse = an array of shape (4,), int64" in text
    assert "inverse = [0, 2, 3, 1]" in text
    assert "permutation = [-1, 2, 0, 1]" in text
    assert "…" in text, "a long line is cut with a sign"


TWO_RANKS = """
import numpy as np
def causal_ring(rank, cp_size, q, k, v, dout, positions):
    got = None
    got = yield np.array([rank])
    return got
"""


def test_the_trace_tells_yield_from_return_and_shows_what_arrives() -> None:
    text = "\n".join(traced("causal_ring", TWO_RANKS))
    assert "yields [0]" in text
    assert "got = [0]" in text
    assert "returns [0]" in text
