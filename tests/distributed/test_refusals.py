"""One rank's mistake, or two ranks that disagree: one ValueError on every rank, no payload."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from cpcore import Dropout, Visibility, contiguous, from_lengths, striped, zigzag
from cpcore.distributed import FLASH_CPU, context_parallel_attention, run_threads
from cpcore.distributed.contract import layout_name
from cpcore.distributed.transport import Transport

LAYOUT = contiguous(12, 3)
Change = Callable[[dict[str, Any]], dict[str, Any]]


def arguments(rank: int) -> dict[str, Any]:
    rng = np.random.default_rng(rank)
    q, k, v = (torch.from_numpy(rng.standard_normal((1, n, 4, 4))) for n in (4, 2, 2))
    q.requires_grad_()
    return {"query": q, "key": k, "value": v, "layout": LAYOUT, "visibility": Visibility()}


def attend(transport: Transport, changed: dict[int, Change]) -> tuple[str, int]:
    """(the refusal, the payload messages) of one rank, whose arguments may be changed."""
    options = arguments(transport.rank)
    if transport.rank in changed:
        options |= changed[transport.rank](options)
    dout = options.pop("dout", None)
    arrays = [options.pop(name) for name in ("query", "key", "value")]
    before = 0  # payload of a forward pass that was right
    try:
        out = context_parallel_attention(*arrays, group=transport, **options)
        before = len(transport.records)
        out.backward(torch.ones_like(out) if dout is None else dout)
    except ValueError as error:
        return str(error), len(transport.records) - before
    return "", len(transport.records)


def told(change: Change, rank: int = 1) -> list[tuple[str, int]]:
    return run_threads(attend, 3, {rank: change}, recording=True, time_limit_s=10)


def as_float32(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name].float() for name in ("query", "key", "value")}


# what one rank changes -> the start of the error, the same on every rank
MISTAKES: dict[str, tuple[Change, str]] = {
    "3 axes": (
        lambda o: {"query": o["query"][0]},
        "query: expected shape (B, heads, 4, width) like the layout, received (4, 4, 4)",
    ),
    "too few tokens": (
        lambda o: {"key": o["key"][:, :, 1:]},
        "key: expected shape (B, heads, 4, width) like the layout, received (1, 2, 3, 4)",
    ),
    "integers": (
        lambda o: {"value": o["value"].long()},
        "value: expected a float16, bfloat16, float32 or float64 tensor, received torch.int64",
    ),
    "an array": (
        lambda o: {"value": o["value"].numpy()},
        "value: expected a float16, bfloat16, float32 or float64 tensor, received float64",
    ),
    "two dtypes": (
        lambda o: {"key": o["key"].float()},
        "key: expected torch.float64 on cpu like query, received torch.float32 on cpu",
    ),
    "another width": (
        lambda o: {"key": o["key"][..., :3]},
        "key: expected batch 1 and width 4 like query, received (1, 2, 4, 3)",
    ),
    "heads that do not group": (
        lambda o: {"query": o["query"][:, :3]},
        "key: expected a head count that divides 3, received 2",
    ),
    "values for other heads": (
        lambda o: {"value": o["value"][:, :1]},
        "value: expected shape (1, 2, 4, 'Dv'), received (1, 1, 4, 4)",
    ),
    "NaN": (
        lambda o: {"key": o["key"] * torch.nan},
        "key: expected finite numbers in every used slot, received NaN or infinity",
    ),
    "no layout": (lambda o: {"layout": [4, 4, 4]}, "layout: expected a Layout, received list"),
    "other ranks": (
        lambda o: {"layout": contiguous(12, 4)},
        "layout: expected 3 ranks like the group, received 4",
    ),
    "no visibility": (
        lambda o: {"visibility": "causal"},
        "visibility: expected a Visibility or None, received str",
    ),
    "too few documents": (
        lambda o: {"visibility": Visibility(documents=[0, 0])},
        "positions: expected positions below 2 (documents), received ",
    ),
    "no protocol": (
        lambda o: {"protocol": "tree"},
        "protocol: expected one of ring, ring_full_return, direct, all_gather, all_to_all,"
        " received 'tree'",
    ),
    "no scale": (lambda o: {"scale": "big"}, "scale: expected a finite number, received 'big'"),
    "no dropout": (
        lambda o: {"dropout": 0.1}, "dropout: expected a Dropout or None, received float",
    ),
    "a kernel that cannot": (
        lambda o: {"block_op": FLASH_CPU, "value": o["value"][..., :3]},
        "block_op: expected an operation that takes these arrays, received flash on CPU",
    ),
    "no kernel": (
        lambda o: {"block_op": "math"}, "block_op: expected a BlockOp or None, received str",
    ),
    "protocols": (
        lambda o: {"protocol": np.array(["ring", "direct"])},
        "protocol: expected one of ring, ring_full_return, direct, all_gather, all_to_all,"
        " received array(['ring', 'direct']",
    ),
    "a sparse key": (
        lambda o: {"key": o["key"].to_sparse()},
        "key: expected a dense tensor, received torch.sparse_coo",
    ),
    "NaN in dout": (
        lambda o: {"dout": torch.full((1, 4, 4, 4), torch.nan, dtype=torch.float64)},
        "dout: expected finite numbers in every used slot, received NaN or infinity",
    ),
}  # fmt: skip
# what one rank changes -> the fact in which it differs, what rank 0 brings, what it brings itself
DIFFERENCES: dict[str, tuple[Change, str, str, str]] = {
    "dtype": (as_float32, "dtype", "torch.float64", "torch.float32"),
    "layout": (lambda o: {"layout": striped(12, 3)}, "layout", "lengths (4, 4, 4), positions ",
               "lengths (4, 4, 4), positions "),
    "visibility": (lambda o: {"visibility": None}, "visibility", "causal True, window None",
                   "full"),
    "window": (lambda o: {"visibility": Visibility(window=3)}, "visibility",
               "causal True, window None", "causal True, window 3"),
    "documents": (lambda o: {"visibility": Visibility(documents=[0] * 12)}, "visibility",
                  "causal True, window None", "causal True, window None, documents "),
    "protocol": (lambda o: {"protocol": "direct"}, "protocol", "ring", "direct"),
    "scale": (lambda o: {"scale": 2.0}, "scale", "0.5", "2.0"),
    "dropout": (lambda o: {"dropout": Dropout(0.5, 1)}, "dropout", "None",
                "Dropout(rate=0.5, seed=1)"),
    "gradients": (lambda o: {"query": o["query"].detach()}, "requires_grad", "True", "False"),
    "batch": (
        lambda o: {n: torch.cat([o[n].detach()] * 2).requires_grad_() for n in ("query", "key",
                                                                               "value")},
        "shapes", "query 4 heads of 1, key 2, widths 4 and 4",
        "query 4 heads of 2, key 2, widths 4 and 4",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_one_rank_is_one_error_on_every_rank_before_any_payload(name: str) -> None:
    change, wanted = MISTAKES[name]
    for rank, (text, payload) in enumerate(told(change)):
        assert text.startswith(wanted)
        assert text.endswith("(on rank 1)") == (rank != 1)
        assert payload == 0


@pytest.mark.parametrize("name", DIFFERENCES)
@pytest.mark.parametrize("rank", [0, 2])
def test_a_difference_between_ranks_names_both_sides_before_any_payload(
    name: str, rank: int
) -> None:
    change, fact, ours, theirs = DIFFERENCES[name]
    if rank == 0:  # then all others differ from rank 0, and rank 1 is the first
        ours, theirs = theirs, ours
    texts = told(change, rank)
    assert len(set(texts)) == 1
    text, payload = texts[0]
    assert text.startswith(f"{fact}: expected {ours}")
    assert f" as on rank 0, received {theirs}" in text
    assert text.endswith(f" on rank {rank or 1}")
    assert payload == 0


def test_a_rank_that_runs_forward_while_another_runs_backward_is_named() -> None:
    def worker(transport: Transport) -> str:
        options = arguments(transport.rank)
        arrays = [options.pop(name) for name in ("query", "key", "value")]
        out = context_parallel_attention(*arrays, group=transport, **options)
        try:
            if transport.rank == 2:
                context_parallel_attention(*arrays, group=transport, **options)
            else:
                out.sum().backward()
        except ValueError as error:
            return str(error)
        return ""

    wanted = "phase: expected backward as on rank 0, received forward on rank 2"
    assert run_threads(worker, 3, time_limit_s=10) == [wanted] * 3


def test_backward_passes_of_two_like_calls_in_another_order_are_named() -> None:
    """Nothing else differs: shapes, layout and phase are the same, and the gradients would mix."""

    def worker(transport: Transport, order: str) -> str:
        options = arguments(transport.rank)
        arrays = [options.pop(name) for name in ("query", "key", "value")]
        outs = [context_parallel_attention(*arrays, group=transport, **options) for _ in range(2)]
        try:
            for out in outs[::-1] if str(transport.rank) in order else outs:
                out.sum().backward()
        except ValueError as error:
            return str(error)
        return ""

    assert run_threads(worker, 3, "", time_limit_s=10) == [""] * 3
    assert run_threads(worker, 3, "012", time_limit_s=10) == [""] * 3
    (text,) = set(run_threads(worker, 3, "2", time_limit_s=10))
    assert re.fullmatch(
        r"call: expected number \d+ as on rank 0, received number \d+ on rank 2", text
    )


def test_layouts_that_cut_one_order_in_two_ways_have_two_names() -> None:
    """More ranks than a message lists; every rank's own shard fits its own layout."""
    one, other = (from_lengths([1] * 16 + ends) for ends in ([3, 1], [1, 3]))
    assert layout_name(one) != layout_name(other)
    assert layout_name(one) == layout_name(from_lengths([1] * 16 + [3, 1]))


def test_a_rank_alone_needs_no_agreement() -> None:
    def worker(transport: Transport) -> str:
        q = torch.zeros(1, 1, 3, 2)
        try:
            context_parallel_attention(q, q, q, layout=zigzag(4, 1), visibility=None,
                                       group=transport)  # fmt: skip
        except ValueError as error:
            return str(error)
        return ""

    wanted = "query: expected shape (B, heads, 4, width) like the layout, received (1, 1, 3, 2)"
    assert run_threads(worker, 1) == [wanted]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("window", [None, 1])
def test_scores_that_overflow_are_an_error(sign: int, window: int | None) -> None:
    """Below as above: a row whose scores are all -inf has lost its weights, not its keys."""

    def worker(transport: Transport) -> None:
        q = torch.full((1, 1, 2, 2), 1e30)
        context_parallel_attention(q, sign * q, q, layout=contiguous(2, 1), group=transport,
                                   visibility=Visibility(window=window))  # fmt: skip

    with pytest.raises(ValueError, match="query and key: expected finite scores in torch"):
        run_threads(worker, 1)


def test_a_group_is_needed() -> None:
    q = torch.zeros(1, 1, 2, 2)
    with pytest.raises(ValueError, match="group: expected an initialized process group"):
        context_parallel_attention(q, q, q, layout=contiguous(2, 1), visibility=None)
