"""The language model trained both ways: equal weights, and switches that are seen."""

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cpcore import Visibility, dense_attention, zigzag
from cpcore.distributed import train, training
from cpcore.distributed.corpus import MULTIPLE, SHORTEST, prose, sequences
from cpcore.distributed.model import Model, Shape, rotary, whole_attention
from cpcore.distributed.recipe import SWITCHES, Recipe
from cpcore.distributed.training import Trained, train_alone
from cpcore.loss import IGNORE
from cpcore.positions import rotary as numpy_rotary
from tests.distributed.test_lab import ENVIRONMENT, ROOT

SHORT = Recipe(steps=12, seq_len=64)


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """The short form: 12 steps of 64 tokens, 1, 2 and 4 ranks, and every switch."""
    return train.train(SHORT, [1, 2, 4], list(SWITCHES), time_limit_s=60)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_losses_and_all_weights_equal_those_of_one_process(
    report: dict[str, Any], ranks: int
) -> None:
    """1e-10 of the largest weight is a million roundings; honest runs stay below a hundred."""
    (run,) = [r for r in report["runs"] if r.ranks == ranks and r.switch is None]
    assert run.same_on_all_ranks
    assert list(run.differences) == [0, 1, 2, 4, 8, 12]
    assert run.differences[0] == 0
    assert max(run.differences.values()) < 1e-13
    assert run.loss_difference < 1e-13
    assert run.agrees


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_switch_moves_the_weights(report: dict[str, Any], switch: str) -> None:
    (run,) = [r for r in report["runs"] if r.switch == switch]
    assert run.ranks == 4
    assert run.same_on_all_ranks, "wrong, and all ranks agree on it"
    assert run.differences[SHORT.steps] >= train.WRONG
    assert run.agrees


def test_the_model_learns_so_that_equal_weights_mean_something(report: dict[str, Any]) -> None:
    assert report["reference"]["fell"] >= 0.2
    assert report["reference"]["moved"] >= 0.01
    assert 200_000 <= report["parameters"] <= 1_000_000
    assert report["agrees"]


def test_the_text_is_the_prose_of_the_book() -> None:
    documents = prose()
    assert len(documents) > 100
    assert min(map(len, documents)) >= SHORTEST
    cells = json.loads((ROOT / "book" / "03_rescale_and_merge.ipynb").read_text())["cells"]
    for cell in cells:
        text = "".join(cell["source"]).encode()
        if len(text) >= SHORTEST:
            assert (text in documents) == (cell["cell_type"] == "markdown")
    with pytest.raises(ValueError, match="book: expected a folder with notebooks or pages"):
        prose(ROOT / "scripts")


def test_sequences_hold_whole_documents_and_what_was_cut_comes_next() -> None:
    documents = [bytes([65 + i]) * n for i, n in enumerate([70, 100, 150])]
    seen = b""
    for sequence in islice(sequences(documents, 64, seed=3), 40):
        assert len(sequence.tokens) == 64
        real = sequence.documents != -1
        seen += bytes(sequence.tokens[real].tolist())
        for number in range(sequence.documents.max() + 1):
            (places,) = np.nonzero(sequence.documents == number)
            assert places[0] % MULTIPLE == 0
            assert len(set(sequence.tokens[places])) == 1
            assert sequence.labels[places[-1]] == IGNORE
            assert (sequence.labels[places[:-1]] == sequence.tokens[places[1:]]).all()
    once = seen[: sum(map(len, documents))]
    assert sorted(once) == sorted(b"".join(documents))


def test_the_same_seed_gives_the_same_text_and_weights() -> None:
    documents = prose()
    first, again = (next(sequences(documents, 64, 5)) for _ in range(2))
    other = next(sequences(documents, 64, 6))
    assert (first.tokens == again.tokens).all()
    assert not (first.tokens == other.tokens).all()
    one, two = (train_alone(Recipe(steps=1, seq_len=64), documents) for _ in range(2))
    assert one.digest == two.digest


def test_rotary_is_that_of_the_package() -> None:
    x = np.random.default_rng(0).standard_normal((2, 6, 8))
    positions = np.array([0, 3, 4, 100, 5, 70000])
    ours = rotary(torch.from_numpy(x), torch.from_numpy(positions)).numpy()
    assert np.abs(ours - numpy_rotary(x, positions)).max() < 1e-13


def test_the_reference_attention_is_dense_attention_and_its_gradients_are_finite() -> None:
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((1, heads, 9, 4)) for heads in (4, 2, 2))
    visible = Visibility(documents=np.array([0, 0, 0, -1, 1, 1, 1, 1, -1])).block(
        np.arange(9), np.arange(9)
    )
    leaves = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    output = whole_attention(torch.from_numpy(visible))(*leaves)
    output.sum().backward()
    wanted, _ = dense_attention(q, k, v, visible=visible)
    assert np.abs(output.detach().numpy() - wanted).max() < 1e-14
    assert all(torch.isfinite(x.grad).all() for x in leaves)


def test_a_shard_without_tokens_passes_the_model() -> None:
    model = Model(Shape(layers=1), torch.float64, 0)
    none = torch.zeros(0, dtype=torch.int64)
    logits = model(none, none, lambda q, k, v: q)
    assert logits.shape == (0, 256)


def test_a_weight_that_is_off_by_one_part_in_a_billion_is_seen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    add_up = training._add_up

    def almost(model: Model) -> None:
        add_up(model)
        model.logits.grad *= 1 + 1e-5  # times learning rate and gradient: a billionth of a weight

    monkeypatch.setattr(training, "_add_up", almost)
    path = tmp_path / "report.json"
    options = ["--ranks", "2", "--steps", "3", "--seq-len", "64", "--switches", "--json", str(path)]
    assert train.main([*options, "--quiet"]) == 1
    assert "agrees: NO" in capsys.readouterr().out
    (run,) = json.loads(path.read_text())["runs"]
    assert 1e-10 < run["differences"]["3"] < 1e-5


def test_copies_that_drift_apart_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that forgets to add up has other weights than rank 0, whose own are compared."""
    add_up = training._add_up

    def forgetful(model: Model) -> None:
        before = model.norm.grad.clone()
        add_up(model)
        if torch.distributed.get_rank() == 1:
            model.norm.grad.copy_(before)

    monkeypatch.setattr(training, "_add_up", forgetful)
    report = train.train(Recipe(steps=1, seq_len=64), [2], [], time_limit_s=60)
    (run,) = report["runs"]
    assert run.differences[1] < 1e-13
    assert not run.same_on_all_ranks
    assert not report["agrees"]


def trained(weights: float, losses: float = 2.0, digest: str = "same") -> Trained:
    """One step that ends with these weights."""
    return Trained([losses], {0: np.ones(3), 1: np.array([1.0, -2.0, weights])}, digest)


@pytest.mark.parametrize(
    ("runs", "switch", "agrees"),
    [
        ([trained(1 + 1e-10)] * 2, None, True),  # 1e-10 of the largest weight, which is 2
        ([trained(1 + 3e-10)] * 2, None, False),
        ([trained(1, losses=2 + 1e-8)] * 2, None, False),
        ([trained(1), trained(1, digest="other")], None, False),
        ([trained(1), trained(1, losses=2.1)], None, False),
        ([trained(float("nan"))] * 2, None, False),
        ([trained(1 + 3e-4)] * 2, "lost_return", True),
        ([trained(1 + 1e-4)] * 2, "lost_return", False),  # half of what it must do
        ([trained(1)] * 2, "lost_return", False),
    ],
)
def test_a_run_agrees_only_if_it_is_as_right_or_as_wrong_as_it_must_be(
    runs: list[Trained], switch: str | None, agrees: bool
) -> None:
    assert train.compare(trained(1), runs, switch, Recipe(steps=1)).agrees == agrees


def test_whole_runs_must_have_learned() -> None:
    for fell, moved, steps, enough in (
        (0.2, 0.01, 30, True),
        (0.19, 0.02, 30, False),
        (0.3, 0.009, 30, False),
        (0.0, 0.0, 29, True),
    ):
        assert train.enough({"fell": fell, "moved": moved}, Recipe(steps=steps)) == enough


def test_labels_are_shifted_before_the_split() -> None:
    sequence = next(sequences(prose(), 64, 0))
    layout = zigzag(64, 4)
    right = training._labels(sequence, layout, None)
    assert (layout.unshard(right, axis=0) == sequence.labels).all()
    wrong = training._labels(sequence, layout, "shift_after_shard")
    assert not (layout.unshard(wrong, axis=0) == sequence.labels).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--ranks", "0"], "ranks: expected an integer of at least 1, received 0"),
        (["--ranks", "1"], "ranks: expected at least 2 for the switches"),
        (["--switches", "sleep"], "switches: expected one of local_positions, "),
        (["--protocol", "all_to_all"], "switches: expected no lost_return by heads"),
        (["--steps", "0"], "steps: expected an integer of at least 1, received 0"),
        (["--seq-len", "100"], "seq_len: expected a multiple of 8, received 100"),
        (["--seed", "-1"], "seed: expected an integer of at least 0, received -1"),
        (["--lr", "nan"], "learning_rate: expected a finite number, received nan"),
        (
            ["--protocol", "all_to_all", "--ranks", "8", "--switches"],
            "protocol: expected one that divides 4 query heads over 2 among 8 ranks",
        ),
    ],
)
def test_wrong_options_are_named_before_any_process_starts(
    options: list[str],
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(train, "launch", None)
    assert train.main([*options, "--quiet"]) == 2
    assert told in capsys.readouterr().err


def test_an_unknown_protocol_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        train.main(["--protocol", "star"])
    assert "invalid choice: 'star' (choose from" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"protocol: expected one of ring, .*, received 'star'"):
        train.train(Recipe(protocol="star"), [2], [])


def test_the_command_runs_under_torchrun() -> None:
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "cpcore"]
    options = ["train", "--steps", "2", "--seq-len", "64", "--switches", "--quiet"]
    done = subprocess.run(
        [sys.executable, *command, *options],
        cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("agrees: yes") == 1
