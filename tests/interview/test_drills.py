"""Estimate drills: the same for everyone, right in a second way, and judged with reasons."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import pytest

from cpcore import from_lengths, ledger, schedule, zigzag
from cpcore.__main__ import main
from cpcore.interview import KINDS, UNITS, Drill, Slip, drill, drills, judge, prepared, read, show
from cpcore.interview.counting import busy_pairs, count_pairs
from cpcore.planner import model_shape

SEEDS = range(40)


def written(one: Drill, times: float = 1.0) -> str:
    """The right answer as a reader would write it, multiplied."""
    return f"{times * one.value / UNITS[one.unit].factor:.5g} {one.unit}"


def test_there_are_eleven_kinds() -> None:
    assert len(KINDS) == 11


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_drill_again(kind: str) -> None:
    for seed in SEEDS:
        one = drill(seed, kind)
        assert one == drill(seed, kind)
        assert one.kind == kind


def test_known_seeds_give_known_drills() -> None:
    """The draw may not change between versions of Python, or two readers would not share one."""
    assert drill(2, "efficiency").prompt.startswith("A causal ring over contiguous shards, 2 ranks")
    assert [drill(seed).kind for seed in range(3)] == [
        "logits per rank", "cache per rank", "bytes of an all-to-all",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_answers_within_the_factor_are_accepted_and_others_are_not(kind: str) -> None:
    for seed in SEEDS:
        one = drill(seed, kind)
        edge = 1 + 0.97 * (one.factor - 1)
        for times in (1.0, edge, 1 / edge):
            assert one.judge(written(one, times)).right, (one.prompt, times)
        for times in (1.03 * one.factor, 1 / (1.03 * one.factor), 100.0):
            assert not one.judge(written(one, times)).right, (one.prompt, times)


@pytest.mark.parametrize("kind", KINDS)
def test_every_slip_of_a_drill_is_rejected_with_its_reason(kind: str) -> None:
    explained = 0
    for seed in SEEDS:
        one = drill(seed, kind)
        for slip in one.slips:
            verdict = one.judge(written(one, slip.factor))
            assert not verdict.right, (one.prompt, slip.reason)
            assert slip.reason in verdict.text, (one.prompt, verdict.text)
            for other in one.slips:  # only what the number cannot tell apart is named beside it
                if not 0.99 < other.factor / slip.factor < 1.01:
                    assert other.reason not in verdict.text, (one.prompt, verdict.text)
            explained += 1
    assert explained > 20


def counted_hop(s: dict[str, Any]) -> float:
    layout = from_lengths([s["seq_len"] // s["cp_size"]] * 2)
    model = s["model"]
    rows = ledger(
        schedule(layout, None, backward=False), layout, q_heads=model.q_heads,
        kv_heads=model.kv_heads, head_dim=model.head_dim, element_bytes=2,
    )  # fmt: skip
    return rows[0].bytes_sent


def counted_trade(s: dict[str, Any]) -> float:
    """Each token's heads go to their ranks; all but a share of 1/R of them leave. Then back."""
    m, ranks, c = s["model"], s["cp_size"], s["seq_len"] // s["cp_size"]
    kv = max(m.kv_heads, ranks) if ranks > m.kv_heads else m.kv_heads
    heads = 2 * m.q_heads + 2 * kv  # query and output, key and value
    return c * heads * m.head_dim * 2 * (ranks - 1) / ranks


def counted_efficiency(s: dict[str, Any]) -> float:
    """The same shape on short shards, in the limit: the triangle's diagonal is corrected for."""
    ranks, c = s["cp_size"], s["seq_len"] // s["cp_size"]
    busiest = c * (c + 1) // 2 + (ranks - 1) * c * c
    assert busy_pairs("contiguous", 8 * ranks, ranks) == 36 + (ranks - 1) * 64
    return s["seq_len"] * (s["seq_len"] + 1) / 2 / ranks / busiest


def threshold(s: dict[str, Any]) -> float:
    return math.ceil(s["speed"] / (s["share"] * s["group"] * s["link"]))


def ratio(s: dict[str, Any]) -> float:
    m, c = s["model"], s["seq_len"] // s["cp_size"]
    compute = 4 * (c * c / 2) * m.q_heads * m.head_dim / s["speed"]
    return compute / (2 * c * m.kv_heads * m.head_dim * 2 / s["link"])


def bill(per_token: Callable[[Any], float]) -> Callable[[dict[str, Any]], float]:
    return lambda s: s["seq_len"] // s["cp_size"] * per_token(s["model"])


SECOND: dict[str, Callable[[dict[str, Any]], float]] = {
    "bytes of an all-to-all": counted_trade,
    "bytes per step": counted_hop,
    "cache per rank": bill(lambda m: m.layers * 2 * m.kv_heads * m.head_dim * 2),
    "efficiency": counted_efficiency,
    "hidden or not": ratio,
    "layer inputs per rank": bill(lambda m: m.layers * m.hidden * 2),
    "logits per rank": bill(lambda m: m.vocabulary * 4),
    "pairs per rank": lambda s: count_pairs(
        "contiguous", s["seq_len"], s["cp_size"], rank=s["rank"]
    ),
    "ring buffers per rank": bill(lambda m: 2 * 2 * m.kv_heads * m.head_dim * 2),
    "smallest chunk": threshold,
    "state per rank": lambda s: 16 * math.ceil(s["model"].parameters / s["shards"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_right_in_a_second_way(kind: str) -> None:
    for seed in SEEDS:
        one = drill(seed, kind)
        assert one.value == pytest.approx(SECOND[kind](dict(one.sizes)), rel=1e-9), one.prompt


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_step_of_the_solution_states_the_answer(kind: str) -> None:
    for seed in SEEDS:
        one = drill(seed, kind)
        texts = [show(one.value, one.unit, digits, bare=True) for digits in range(4)]
        stated = one.steps[-1] if kind != "state per rank" else one.solution()
        assert any(text in stated.replace(":", " ") for text in texts), (texts, one.steps)


def test_no_answer_is_a_coin_toss_between_hidden_and_exposed() -> None:
    for seed in range(200):
        one = drill(seed, "hidden or not")
        assert max(one.value, 1 / one.value) > one.factor  # all that is accepted is on its side


def test_a_hundred_drills_are_prepared_and_none_twice() -> None:
    made = prepared(132)
    assert len({one.prompt for one in made}) == len(made) == 132
    assert {one.kind for one in made} == set(KINDS)


def test_more_drills_than_the_draws_yield_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drills, "KINDS", {"efficiency": KINDS["efficiency"]})
    with pytest.raises(ValueError, match="count: expected at most 27, received 50"):
        prepared(50)


@pytest.mark.parametrize(("seed", "kind"), [(-1, None), (0, "weather")])
def test_a_wrong_request_is_refused(seed: int, kind: str | None) -> None:
    with pytest.raises(ValueError, match=r"seed: expected|kind: expected"):
        drill(seed, kind)


def test_the_sizes_of_a_drill_are_published() -> None:
    model = drill(3, "cache per rank").sizes["model"]
    assert model == model_shape(model.name)
    assert zigzag(8, 2).cp_size == 2  # the layouts that drills speak of exist


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("64 MiB", 2**26, "MiB"),
        ("67.1MB", 67.1e6, "MB"),
        ("1,024 tokens", 1024, "tokens"),
        ("4.4k tokens", 4400, "tokens"),
        ("1 token", 1, "tokens"),
        ("53.3 percent", 0.533, "%"),
        ("0.15 ms", 1.5e-4, "ms"),
        ("400 Gb/s", 50e9, "Gbit/s"),
        ("2e3 GB", 2e12, "GB"),
        (".5 x", 0.5, "x"),
    ],
)
def test_an_answer_is_a_number_and_a_unit(text: str, value: float, unit: str) -> None:
    answer = read(text)
    assert (answer.value, answer.unit) == (pytest.approx(value), unit)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("many", "a number and a unit"),
        ("64", "a unit after the number"),
        ("64 bananas", "a unit"),
        ("6 kbananas", "a unit"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, missing: str) -> None:
    with pytest.raises(ValueError, match=missing):
        read(text)
    assert missing in judge(text, 1.0, "GiB").text


@pytest.mark.parametrize(
    ("text", "right", "said"),
    [
        ("64 GiB", True, "Right: 64.0 GiB."),
        ("64 GB", True, "These digits belong to GiB"),
        ("68.7 GiB", True, "These digits belong to GB"),
        ("68.7 GB", True, "Right: 64.0 GiB."),
        ("512 Gbit", True, "Right"),
        ("512 GB", False, "number of bits"),
        ("8 GiB", False, "taken for bits"),
        ("64 MiB", False, "A prefix too low"),
        ("64 TiB", False, "A prefix too high"),
        ("64 GB/s", False, "data a second"),
        ("3 GiB", False, "21.3 times less"),
        ("0 GiB", False, "above 0"),
        ("-64 GiB", False, "above 0"),
        ("1e999 GiB", False, "over a million times more"),
        ("1e-320 bytes", False, "over a million times less"),
        ("64,5 GiB", False, "a point before decimals"),
        ("64,000 MiB", True, "Right"),
        ("1.5 TiB", False, "24.0 times more"),
        ("64 TFLOP", False, "TFLOP measure work"),
        ("0.064 ms", False, "ms measure time"),
    ],
)
def test_unit_errors_are_explained(text: str, right: bool, said: str) -> None:
    verdict = judge(text, 64 * 2**30, "GiB", factor=1.25)
    assert verdict.right is right
    assert said in verdict.text


def test_slips_of_the_same_size_are_all_named() -> None:
    """Four ranks and a group of four: the number alone does not tell which one was forgotten."""
    slips = (Slip(8, "All ranks."), Slip(3, "Three."))
    verdict = judge("8 GiB", 2**30, "GiB", slips=slips)
    assert verdict.text == "Not yet. All ranks. Or: That is the number of bits; a byte has 8."


def test_a_slip_is_not_blamed_for_an_answer_that_a_strict_drill_sets_apart() -> None:
    half = (Slip(0.97, "Half."),)
    assert "1.1 times more" in judge("55 %", 0.516, "%", factor=1.015, slips=half).text
    assert "Half." in judge("50 %", 0.516, "%", factor=1.015, slips=half).text


def test_thousands_and_millions_of_tokens_are_told_apart() -> None:
    assert "k or M" in judge("4.4 M tokens", 4400, "tokens").text


def terminal(monkeypatch: pytest.MonkeyPatch, argv: list[str], *lines: str) -> int:
    """The command, given these lines to read."""
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    return main(["drill", *argv])


def test_the_command_asks_judges_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (drill(seed, "cache per rank") for seed in (4, 5))
    lines = (written(one, 2 * one.factor), written(one), "?", "")
    assert terminal(monkeypatch, ["--seed", "4", "--kind", "cache per rank"], *lines) == 0
    said = capsys.readouterr().out
    places = [said.index(text) for text in (one.prompt, "Not yet", "Right: ", two.prompt)]
    assert places == sorted(places)
    assert two.solution() in said


def test_the_command_ends_with_its_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert terminal(monkeypatch, []) == 0
    assert drill(0).prompt in capsys.readouterr().out
