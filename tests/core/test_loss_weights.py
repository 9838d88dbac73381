"""C31: the weight gradient of one sequence is the same on any number of ranks."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cpcore import Layout, Visibility, contiguous, from_lengths, simulate, striped, zigzag
from cpcore.loss import IGNORE, LossSum, loss_gradient, loss_sum, mean_loss, next_token_labels
from cpcore.schedule import PROTOCOLS
from cpcore.training_pitfalls import averaged_over_ranks, rank_mean_gradient, shift_after_shard
from tests.support.relation import double_loop

Array = NDArray[Any]
S, WIDTH, VOCABULARY = 12, 4, 7
DOCUMENTS = np.array([0] * 5 + [1] * 5 + [-1] * 2)
RULE = {"documents": DOCUMENTS}


class Model(NamedTuple):
    """Every parameter is shared by all tokens, so every rank has a part of each gradient."""

    embedding: Array  # (VOCABULARY, WIDTH)
    project: Array  # (WIDTH, WIDTH): query, key and value in one
    unembed: Array  # (WIDTH, VOCABULARY)


class Step(NamedTuple):
    """The loss of one step and, rank by rank, its part of the gradient of each parameter."""

    loss: float
    parts: list[Model]


def sequence() -> tuple[Model, Array]:
    rng = np.random.default_rng(5)
    shapes = (VOCABULARY, WIDTH), (WIDTH, WIDTH), (WIDTH, VOCABULARY)
    return Model(*(rng.standard_normal(shape) for shape in shapes)), rng.integers(0, VOCABULARY, S)


def train(layout: Layout, labels: list[Array] | None = None, **options: Any) -> Step:
    """Forward and backward on every rank, with the count of all ranks."""
    model, tokens = sequence()
    if labels is None:
        labels = layout.shard(next_token_labels(tokens, DOCUMENTS), axis=0)
    own_mean = options.pop("own_mean", False)
    hidden = model.embedding[tokens] @ model.project
    attend = layout, Visibility(**RULE)
    run = simulate(hidden, hidden, hidden, *attend, **options)
    logits = [rank.output @ model.unembed for rank in run.per_rank]
    losses = [loss_sum(*pair) for pair in zip(logits, labels, strict=True)]
    count = sum(part.count for part in losses)
    pairs = zip(logits, labels, strict=True)
    dlogits = [
        rank_mean_gradient(*pair) if own_mean else loss_gradient(*pair, count) for pair in pairs
    ]
    dout = layout.unshard([d @ model.unembed.T for d in dlogits])
    run = simulate(hidden, hidden, hidden, *attend, dout=dout, **options)
    parts = []
    for rank, ids, d in zip(run.per_rank, layout.shard(tokens, axis=0), dlogits, strict=True):
        assert rank.dq is not None
        assert rank.dk is not None
        assert rank.dv is not None
        dhidden = rank.dq + rank.dk + rank.dv
        embedding = np.zeros_like(model.embedding)
        np.add.at(embedding, ids, dhidden @ model.project.T)
        parts.append(Model(embedding, model.embedding[ids].T @ dhidden, rank.output.T @ d))
    return Step(mean_loss(losses), parts)


def summed(step: Step) -> list[Array]:
    return [np.sum(parts, axis=0) for parts in zip(*step.parts, strict=True)]


def by_torch() -> tuple[float, list[Array]]:
    """The whole sequence at once, by autograd."""
    model, tokens = sequence()
    embedding, project, unembed = (torch.tensor(x, requires_grad=True) for x in model)
    hidden = embedding[torch.tensor(tokens)] @ project
    seen = double_loop(range(S), range(S), RULE)
    scores = (hidden @ hidden.T / WIDTH**0.5).masked_fill(~torch.tensor(seen), -1e300)
    out = torch.softmax(scores, -1) @ hidden
    labels = torch.tensor(
        [int(tokens[i + 1]) if i not in (4, 9, 10, 11) else IGNORE for i in range(S)]
    )
    loss = torch.nn.functional.cross_entropy(out @ unembed, labels, ignore_index=IGNORE)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.item(), [np.asarray(x.grad) for x in (embedding, project, unembed)]


LAYOUTS = [
    *(make(S, size) for size in range(1, 6) for make in (contiguous, zigzag, striped)),
    from_lengths([1, 0, 9, 2]),  # an empty rank, and one that holds padding only
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: str(layout.lengths))
def test_C31_loss_and_weight_gradients_equal_autograd_on_any_number_of_ranks(
    layout: Layout,
) -> None:
    """1e-13: a few hundred operations on numbers of order 1."""
    loss, wanted = by_torch()
    step = train(layout)
    assert step.loss == pytest.approx(loss, rel=1e-13)
    for got, gradient in zip(summed(step), wanted, strict=True):
        np.testing.assert_allclose(got, gradient, rtol=0, atol=1e-13)
        assert np.abs(gradient).max() > 0.01


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_C31_no_protocol_changes_a_weight_gradient(protocol: str) -> None:
    step, alone = train(zigzag(S, 3), protocol=protocol, max_block=2), train(contiguous(S, 1))
    for got, wanted in zip(summed(step), summed(alone), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-13)


def test_C31_the_mean_over_ranks_is_too_small_by_their_number() -> None:
    wanted = summed(train(contiguous(S, 1)))
    for size in (1, 2, 3, 4):
        parts = zip(*train(zigzag(S, size)).parts, strict=True)
        for averaged, gradient in zip(map(averaged_over_ranks, parts), wanted, strict=True):
            np.testing.assert_allclose(size * averaged, gradient, rtol=0, atol=1e-13)
            assert (np.abs(averaged - gradient).max() > 1e-3) == (size > 1)


def test_C29_each_ranks_own_mean_gives_other_weight_gradients() -> None:
    """Even after the mean over ranks that belongs to it: 3 ranks with 4, 3 and 1 labels."""
    layout = contiguous(S, 3)
    wanted = summed(train(layout))
    parts = zip(*train(layout, own_mean=True).parts, strict=True)
    for got, gradient in zip(map(averaged_over_ranks, parts), wanted, strict=True):
        assert np.abs(got - gradient).max() > 1e-2


def test_C32_labels_shifted_after_sharding_change_loss_and_gradients() -> None:
    tokens = sequence()[1]
    layout = zigzag(S, 2)
    wrong = train(layout, labels=shift_after_shard(tokens, layout))
    right = train(layout)
    assert abs(wrong.loss - right.loss) > 1e-2
    assert np.abs(summed(wrong)[1] - summed(right)[1]).max() > 1e-2


@pytest.mark.parametrize("fault", [("lost_return", 1, 0), "stale_kv", "own_lse"])
def test_a_wrong_backward_leaves_the_loss_and_changes_the_weights(fault: Any) -> None:
    wrong, right = train(zigzag(S, 3), fault=fault), train(zigzag(S, 3))
    assert wrong.loss == right.loss
    assert np.abs(summed(wrong)[1] - summed(right)[1]).max() > 1e-3


def test_two_sequences_sum_over_the_context_and_average_over_the_data() -> None:
    """C40 with the counts of both: (sum, count) adds up over every rank of either kind."""
    parts = [LossSum(6.0, 3), LossSum(0.0, 0), LossSum(2.0, 1), LossSum(4.0, 2)]
    assert mean_loss(parts) == 2
