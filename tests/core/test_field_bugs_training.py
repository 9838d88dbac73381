"""Field bugs of training: loss, labels, summed gradients, positions, heads and lengths."""

import numpy as np
import pytest

from cpcore import (
    Visibility,
    contiguous,
    from_lengths,
    ledger,
    schedule,
    simulate,
    zigzag,
)
from cpcore.loss import IGNORE, LossSum, loss_gradient, loss_sum, mean_loss, next_token_labels
from cpcore.packing import pad_packed
from cpcore.positions import rotary
from cpcore.training_pitfalls import (
    averaged_over_ranks,
    floor_divided_cu_seqlens,
    local_rotary,
    mean_of_rank_means,
    rank_mean,
    rank_mean_gradient,
    repeat_kv_heads,
    shift_after_shard,
)
from tests.support.runs import setting


def test_C29_a_mean_of_rank_means_is_6_where_the_mean_is_4() -> None:
    parts = [LossSum(6.0, 3), LossSum(10.0, 1)]
    assert mean_loss(parts) == 4
    assert mean_of_rank_means(parts) == 6
    even = [LossSum(6.0, 2), LossSum(10.0, 2)]
    assert mean_of_rank_means(even) == mean_loss(even) == 4
    assert mean_of_rank_means([]) == mean_loss([]) == 0
    assert mean_of_rank_means(even[:1]) == 3, "one rank hides it"


def test_C30_a_rank_without_valid_tokens_neither_divides_by_0_nor_counts() -> None:
    parts = [LossSum(8.0, 2), LossSum(0.0, 0)]
    assert mean_loss(parts) == 4
    assert mean_of_rank_means(parts) == 2
    logits, nothing = np.ones((2, 3)), [IGNORE, IGNORE]
    assert loss_sum(logits, nothing) == (0, 0)
    assert np.isnan(rank_mean(logits, nothing))
    assert np.isnan(rank_mean_gradient(logits, nothing)).all()
    assert not loss_gradient(logits, nothing, count=5).any()
    assert rank_mean(logits, [0, IGNORE]) == pytest.approx(np.log(3))
    assert rank_mean(logits, [0, 2]) == pytest.approx(np.log(3))
    one = loss_gradient(logits, [0, IGNORE], count=1)
    np.testing.assert_array_equal(rank_mean_gradient(logits, [0, IGNORE]), one)


def test_C32_labels_are_shifted_before_the_sequence_is_cut() -> None:
    tokens, layout = np.arange(8), zigzag(8, 2)
    right = layout.shard(next_token_labels(tokens), axis=0)
    assert [x.tolist() for x in right] == [[1, 2, 7, IGNORE], [3, 4, 5, 6]]
    wrong = shift_after_shard(tokens, layout)
    assert [x.tolist() for x in wrong] == [[1, 6, 7, IGNORE], [3, 4, 5, IGNORE]]
    alone = shift_after_shard(tokens, zigzag(8, 1))[0]
    assert alone.tolist() == next_token_labels(tokens).tolist()
    assert [x.tolist() for x in shift_after_shard([3], from_lengths([0, 1]))] == [[], [IGNORE]]


def test_C40_gradients_are_summed_over_the_context_and_averaged_over_the_data() -> None:
    """Two sequences on two ranks each: parts (1, 2) and (3, 6)."""
    parts = np.array([[1.0, 2.0], [3.0, 6.0]])
    assert parts.sum(axis=1).mean() == 6
    assert averaged_over_ranks(list(parts.ravel())) == 3
    assert averaged_over_ranks([parts[0]]).tolist() == parts[0].tolist()
    with pytest.raises(
        ValueError, match=r"^gradients: expected at least one, one per rank, received none$"
    ):
        averaged_over_ranks([])


def test_C19_rotary_positions_counted_locally_turn_cos_3_into_cos_1() -> None:
    """S = 4 on two ranks: position 3 is at place 1 of its shard."""
    x, layout = np.array([[1.0, 0.0]] * 4), contiguous(4, 2)
    for turn, wanted in ((rotary, np.cos(3)), (local_rotary, np.cos(1))):
        shards = zip(layout.shard(x), layout.owned, strict=True)
        turned = layout.unshard([turn(shard, pos) for shard, pos in shards])
        assert turned[3] @ turned[0] == pytest.approx(wanted)
        assert turned[1] @ turned[0] == pytest.approx(np.cos(1)), "within a shard both are right"
    assert [round(float(np.cos(n)), 3) for n in (3, 1)] == [-0.99, 0.54]


def test_C21_heads_repeated_before_the_exchange_give_right_numbers_and_more_bytes() -> None:
    case = setting(zigzag(8, 2), heads=(4, 2))
    p, right = case.problem, case.run()
    k, v = repeat_kv_heads(p.k, p.v, 4)
    run = simulate(p.q, k, v, case.layout, Visibility(), dout=p.dout)
    np.testing.assert_allclose(run.output, right.output, rtol=0, atol=1e-14)
    for got, wanted in ((run.dk, right.dk), (run.dv, right.dv)):
        assert got is not None
        assert wanted is not None
        summed = got.reshape(2, 2, *got.shape[1:]).sum(axis=1)
        np.testing.assert_allclose(summed, wanted, rtol=0, atol=1e-13)
    sent = [
        ledger(schedule(case.layout, None), case.layout, q_heads=4, kv_heads=h, head_dim=3)[0]
        for h in (2, 4)
    ]
    assert sent[1].bytes_sent == 2 * sent[0].bytes_sent > 0


def test_C16_lengths_by_floor_division_drop_a_real_token() -> None:
    packed = pad_packed([0, 7], multiple=4)
    chunks = [zigzag(8, 2).owned[rank].reshape(2, 2) for rank in (0, 1)]
    real = [[int((packed.documents[c] != -1).sum()) for c in chunk] for chunk in chunks]
    assert real == [[2, 1], [2, 2]]
    wrong = floor_divided_cu_seqlens([0, 7], 2)
    assert wrong.tolist() == [0, 3]
    assert 2 * wrong[-1] == 6 < 7
    assert floor_divided_cu_seqlens([0, 8], 2).tolist() == [0, 4]
