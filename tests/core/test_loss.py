"""Labels before sharding, and a loss kept as (sum, count) whose gradients add up over ranks."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cpcore import Layout, contiguous, from_lengths, zigzag
from cpcore.loss import IGNORE, LossSum, loss_gradient, loss_sum, mean_loss, next_token_labels

Array = NDArray[Any]
LAYOUTS = [contiguous(9, 1), contiguous(9, 2), zigzag(9, 3), from_lengths([2, 0, 3, 4])]


def logits_and_labels(seed: int = 0) -> tuple[Array, Array]:
    """Nine tokens of a vocabulary of five; three have no label, among them the first two."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, 9)
    labels[[0, 1, 6]] = IGNORE
    return 3 * rng.standard_normal((9, 5)), labels


def by_torch(logits: Array, labels: Array, reduction: str) -> tuple[float, Array]:
    scores = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(
        scores, torch.tensor(labels), ignore_index=IGNORE, reduction=reduction
    )
    loss.backward()  # type: ignore[no-untyped-call]
    assert scores.grad is not None
    return loss.item(), scores.grad.numpy()


def test_a_label_is_the_next_token_and_the_last_has_none() -> None:
    assert next_token_labels([4, 8, 15, 16]).tolist() == [8, 15, 16, IGNORE]
    assert next_token_labels([4]).tolist() == [IGNORE]
    assert next_token_labels([]).tolist() == []
    assert next_token_labels([], documents=[]).tolist() == []


def test_the_end_of_a_document_and_padding_have_no_label() -> None:
    """One-token documents, padding between, before and after, and an id that comes back."""
    tokens = np.arange(10, 22)
    documents = [-1, 3, 3, 3, 5, -1, -1, 3, 3, 0, 0, -1]
    wanted = [-1, 12, 13, -1, -1, -1, -1, 18, -1, 20, -1, -1]
    labels = next_token_labels(tokens, documents)
    assert labels.tolist() == wanted
    assert labels.dtype == np.int64


def test_labels_do_not_alias_the_tokens() -> None:
    tokens = np.arange(4)
    next_token_labels(tokens)[:] = 7
    assert tokens.tolist() == [0, 1, 2, 3]


def test_the_loss_equals_torch_cross_entropy_in_float64() -> None:
    """1e-13: nine logarithms of sums of five terms."""
    logits, labels = logits_and_labels()
    total, count = loss_sum(logits, labels)
    wanted, _ = by_torch(logits, labels, "sum")
    assert total == pytest.approx(wanted, rel=1e-13)
    assert count == 6
    assert total > 5


def test_the_gradient_equals_torch_and_finite_differences() -> None:
    logits, labels = logits_and_labels()
    gradient = loss_gradient(logits, labels, 6)
    mean, wanted = by_torch(logits, labels, "mean")
    np.testing.assert_allclose(gradient, wanted, rtol=0, atol=1e-15)
    assert mean_loss([loss_sum(logits, labels)]) == pytest.approx(mean, rel=1e-13)
    direction, step = np.random.default_rng(1).standard_normal(logits.shape), 1e-6
    ends = [loss_sum(logits + sign * step * direction, labels).sum / 6 for sign in (1, -1)]
    slope = (ends[0] - ends[1]) / (2 * step)
    # 1e-8: rounding of the two sums over the step
    assert (gradient * direction).sum() == pytest.approx(slope, abs=1e-8)
    assert np.abs(gradient[labels != IGNORE]).max() > 0.05


def test_sums_counts_and_gradients_of_shards_add_up_for_every_layout() -> None:
    logits, labels = logits_and_labels()
    whole, count = loss_sum(logits, labels)
    for layout in LAYOUTS:
        shards = list(zip(layout.shard(logits), layout.shard(labels, axis=0), strict=True))
        parts = [loss_sum(*shard) for shard in shards]
        assert sum(part.count for part in parts) == count == 6
        assert mean_loss(parts) == pytest.approx(whole / 6, rel=1e-14)
        gradient = layout.unshard([loss_gradient(*shard, count) for shard in shards])
        np.testing.assert_array_equal(gradient, loss_gradient(logits, labels, 6))
    assert [part.count for part in parts][:2] == [0, 0], "the last layout has ranks without any"


def test_a_shard_without_tokens_or_without_labels_has_sum_0_count_0_and_gradient_0() -> None:
    for logits, labels in ((np.ones((0, 4)), []), (np.ones((2, 4)), [IGNORE, IGNORE])):
        assert loss_sum(logits, labels) == (0.0, 0)
        for count in (0, 3):
            gradient = loss_gradient(logits, labels, count)
            assert gradient.shape == logits.shape
            assert not gradient.any()
    assert mean_loss([LossSum(0.0, 0)] * 2) == 0.0


def test_a_slot_without_label_may_hold_anything() -> None:
    logits, labels = logits_and_labels()
    dirty = logits.copy()
    dirty[0], dirty[1], dirty[6] = np.nan, np.inf, -np.inf
    assert loss_sum(dirty, labels) == loss_sum(logits, labels)
    np.testing.assert_array_equal(loss_gradient(dirty, labels, 6), loss_gradient(logits, labels, 6))


def test_large_logits_neither_overflow_nor_lose_the_loss() -> None:
    logits = np.array([[1e4, 0.0], [0.0, 1e4], [-1e4, -1e4]])
    assert loss_sum(logits, [0, 0, 1]).sum == pytest.approx(1e4 + np.log(2), rel=1e-15)
    gradient = 3 * loss_gradient(logits, [0, 0, 1], 3)
    np.testing.assert_allclose(gradient, [[0, 0], [-1, 1], [0.5, -0.5]], rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("dtype", "state"),
    [(np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)],
)
def test_small_dtypes_are_computed_in_float32_and_summed_in_float64(dtype: Any, state: Any) -> None:
    logits, labels = logits_and_labels()
    scores = logits.astype(dtype)
    gradient = loss_gradient(scores, labels, 6)
    assert gradient.dtype == state
    exact = loss_sum(scores.astype(np.float64), labels)
    # a few roundings of float32 in each of six losses of about 3
    bound = 20 * float(np.finfo(state).eps)
    assert loss_sum(scores, labels).sum == pytest.approx(exact.sum, rel=bound)
    wide = loss_gradient(scores.astype(np.float64), labels, 6)
    np.testing.assert_allclose(gradient, wide, rtol=0, atol=bound)
    assert isinstance(loss_sum(scores, labels).sum, float)


def test_a_long_float32_sum_does_not_drift() -> None:
    """A float32 sum of 2**18 equal losses would be off by far more than one rounding."""
    count = 2**18
    part = loss_sum(np.zeros((count, 3), np.float32), np.zeros(count, np.int64))
    assert part == (count * float(np.log(np.float32(3))), count)


def test_the_mean_is_over_tokens_not_ranks() -> None:
    assert mean_loss([LossSum(6.0, 3), LossSum(10.0, 1)]) == 4
    assert mean_loss(iter([LossSum(1.0, 1), LossSum(2.0, 2), LossSum(0.0, 0)])) == 1
    assert mean_loss([]) == 0.0
    assert mean_loss([LossSum(3.0, 1)]) == 3


def test_a_single_label_divides_by_1() -> None:
    np.testing.assert_allclose(loss_gradient(np.zeros((1, 2)), [0], 1), [[-0.5, 0.5]], atol=1e-15)


def test_the_reduction_knows_no_layout() -> None:
    """Any regrouping of the tokens gives the same sums: shown for a random partition."""
    logits, labels = logits_and_labels(2)
    rng = np.random.default_rng(0)
    layout = Layout(tuple(np.array_split(rng.permutation(9), 4)))
    shards = zip(layout.shard(logits), layout.shard(labels, axis=0), strict=True)
    parts = [loss_sum(*shard) for shard in shards]
    assert sum(p.sum for p in parts) == pytest.approx(loss_sum(logits, labels).sum, rel=1e-14)
