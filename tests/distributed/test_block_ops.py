"""Which operation computes a piece, and that each operation computes the same."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from cpcore import Visibility, contiguous, from_lengths, zigzag
from cpcore.distributed import (
    FLASH_CPU,
    MATH,
    PeerError,
    context_parallel_attention,
    run_threads,
)
from cpcore.distributed.block_ops import Math, Rule, Saved, choose
from cpcore.distributed.state import Stats, Total
from cpcore.distributed.transport import Transport


def normal(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def summaries(q_heads: int, triangle: bool) -> list[tuple[torch.Tensor, ...]]:
    """(output, lse, dq, dk, dv) of one piece by the kernel and by plain math."""
    q, k = normal(0, 2, q_heads, 7, 4), normal(1, 2, 2, 7, 4)
    v, dout = normal(2, 2, 2, 7, 4), normal(3, 2, q_heads, 7, 4)
    mask = torch.ones(7, 7, dtype=torch.bool).tril() if triangle else None
    found = []
    for op, rule in ((FLASH_CPU, Rule(0.5, triangle)), (MATH, Rule(0.5, visible=mask))):
        output, total, top = op.attend(q, k, v, rule)
        out, lse = output / total[..., None], top + total.log()
        saved = Saved(dout, out, lse)
        found.append((out, lse, *op.gradients(q, k, v, saved, rule)))
    return found


@pytest.mark.parametrize("q_heads", [2, 6])
@pytest.mark.parametrize("triangle", [False, True])
def test_kernel_and_plain_math_give_one_summary_and_one_gradient(
    q_heads: int, triangle: bool
) -> None:
    kernel, plain = summaries(q_heads, triangle)
    for one, other in zip(kernel, plain, strict=True):
        # Sums of at most 7 · 3 numbers of size 1: a hundred roundings are far below this.
        assert torch.allclose(one, other, rtol=0, atol=1e-13)


@pytest.mark.parametrize("strided", ["query", "key", "value", "dout"])
def test_rows_whose_numbers_are_apart_in_memory_are_read_right(strided: str) -> None:
    """The kernel would take a row's numbers for neighbors, and read past the end of the array."""

    def worker(transport: Transport, apart: bool) -> list[torch.Tensor]:
        names = ("query", "key", "value", "dout")
        arrays = {n: normal(i, 1, 2, 8, 4) for i, n in enumerate(names)}
        arrays[strided] = arrays[strided].mT.contiguous().mT if apart else arrays[strided]
        *qkv, dout = (x.requires_grad_(n != "dout") for n, x in arrays.items())
        out = context_parallel_attention(
            *qkv, layout=zigzag(16, 2), visibility=Visibility(), group=transport
        )
        out.backward(dout)
        return [out.detach(), *(x.grad for x in qkv)]

    found = []
    for apart in (False, True):
        found.append([x for rank in run_threads(worker, 2, apart) for x in rank])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_does_not_round_what_this_function_computes(dtype: torch.dtype) -> None:
    """Masked pieces are plain matrix products, which autocast would narrow to 16 bits."""

    def worker(transport: Transport, narrow: bool) -> list[torch.Tensor]:
        q = normal(transport.rank, 1, 1, 8, 4, dtype=torch.float32).requires_grad_()
        with torch.autocast("cpu", dtype, enabled=narrow):
            out = context_parallel_attention(
                q, q, q, layout=zigzag(16, 2), visibility=Visibility(window=3), group=transport
            )
            out.sum().backward()
        return [out.detach(), q.grad]

    found = []
    for narrow in (False, True):
        found.append([x for rank in run_threads(worker, 2, narrow) for x in rank])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("triangle", [False, True])
def test_a_piece_whose_scores_overflow_weighs_nothing(triangle: bool) -> None:
    """The kernel says lse 0 for a row that has only scores of -inf, as if its weights were 1."""
    q, k = torch.full((1, 2, 3, 2), -1e30), torch.full((1, 1, 3, 2), 1e30)
    if triangle:
        k[:, :, 1:] = 0  # an lse of 0 that is right, for rows 1 and 2 with one weight of 1
    q[:, 1, 0] = 0
    mask = torch.ones(3, 3, dtype=torch.bool).tril() if triangle else None
    found = []
    for op, rule in ((FLASH_CPU, Rule(0.5, triangle)), (MATH, Rule(0.5, visible=mask))):
        stats = op.attend(q, k, torch.ones(1, 1, 3, 2), rule)
        found.append((stats.max + stats.sum.log()).isneginf())
    rows = [True, False, False] if triangle else [True, True, True]
    assert found[0].tolist() == found[1].tolist() == [[rows, [False, *rows[1:]]]]


class Counting(Math):
    """Plain math that counts what it was asked to compute."""

    def __init__(self) -> None:
        self.calls = 0

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rule: Rule) -> Stats:
        self.calls += 1
        return super().attend(q, k, v, rule)


def test_an_injected_operation_computes_every_piece() -> None:
    layout = zigzag(16, 2)
    ops = [Counting(), Counting()]

    def worker(transport: Transport) -> torch.Tensor:
        q = k = v = normal(transport.rank, 1, 1, 8, 4)
        return context_parallel_attention(
            q, k, v, layout=layout, visibility=Visibility(), group=transport,
            block_op=ops[transport.rank],
        )  # fmt: skip

    run_threads(worker, 2)
    assert [op.calls for op in ops] == [2, 2]  # each rank's own triangle, and one rectangle


@pytest.mark.parametrize(
    ("value_width", "scale", "dropout"), [(3, 1.0, False), (4, -1.0, False), (4, 1.0, True)]
)
def test_the_kernel_is_left_alone_where_it_is_wrong(
    value_width: int, scale: float, dropout: bool
) -> None:
    """Dv ≠ D it cannot read; hidden scores of -inf times a negative scale would be +inf."""
    q, v = normal(0, 1, 1, 3, 4), normal(0, 1, 1, 3, value_width)
    assert set(choose(None, q, v, scale, dropout).values()) == {MATH}
    assert choose(None, q, q, 1.0, False)["triangle"] is FLASH_CPU


def test_an_operation_that_cannot_take_the_arrays_is_refused() -> None:
    q, v = normal(0, 1, 1, 3, 4), normal(0, 1, 1, 3, 3)
    with pytest.raises(ValueError, match="block_op: expected an operation that takes these arrays"):
        choose(FLASH_CPU, q, v, 1.0, False)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bit_results_are_rounded_once(dtype: torch.dtype) -> None:
    """The result is the float32 result of the same numbers, cast: nothing else is rounded."""
    layout, rule = from_lengths([5, 0, 3]), Visibility()
    arrays = [normal(n, 1, 4, 8, 8, dtype=dtype) for n in range(4)]

    def worker(transport: Transport, widen: bool) -> list[torch.Tensor]:
        index = torch.from_numpy(layout.owned[transport.rank].copy())
        q, k, v, dout = (x[:, :, index].to(torch.float32 if widen else dtype) for x in arrays)
        leaves = [x.requires_grad_() for x in (q, k[:, :2], v[:, :2])]
        leaves = [x.detach().requires_grad_() for x in leaves]
        out = context_parallel_attention(*leaves, layout=layout, visibility=rule, group=transport)
        out.backward(dout)
        return [out.detach(), *(x.grad for x in leaves if x.grad is not None)]

    for narrow, wide in zip(run_threads(worker, 3, False), run_threads(worker, 3, True),
                            strict=True):  # fmt: skip
        for got, wanted in zip(narrow, wide, strict=True):
            assert got.dtype == dtype
            assert torch.equal(got, wanted.to(dtype))


def total(*parts: slice) -> Total:
    """A share of ones for each slice."""
    made = Total()
    for part in parts:
        made.add(part, torch.ones(1, 1, part.stop - part.start, 1))
    return made


@pytest.mark.parametrize(
    ("parts", "sum_of_all"),
    [
        ([slice(1, 3), slice(2, 5), slice(1, 3)], [0, 2, 3, 1, 1, 0, 0]),  # overlap in part
        ([slice(0, 7), slice(2, 4), slice(0, 7)], [2, 2, 3, 3, 2, 2, 2]),
        ([slice(2, 4), slice(0, 7)], [1, 1, 2, 2, 1, 1, 1]),
        ([slice(0, 4), slice(4, 7)], [1] * 7),
        ([], [0] * 7),
    ],
)
def test_a_total_holds_what_was_added_and_0_where_nothing_was(
    parts: list[slice], sum_of_all: list[int]
) -> None:
    rows = torch.full((1, 1, 7, 1), torch.nan, dtype=torch.bfloat16)
    assert total(*parts).of_rows(rows).flatten().tolist() == sum_of_all
    assert total(*parts).of_rows(rows).dtype == torch.float32
    array = torch.full((1, 1, 7, 1), torch.nan)
    total(*parts).write_to(array)
    assert array.flatten().tolist() == sum_of_all
    total(*parts).add_to(array)
    assert array.flatten().tolist() == [2 * x for x in sum_of_all]


def test_long_shards_equal_the_attention_of_torch() -> None:
    """Rows pass the kernel's tiles of 512 keys."""
    layout, seq_len = zigzag(1500, 2), 1500
    arrays = [normal(n, 1, 2, seq_len, 8).requires_grad_() for n in range(3)]
    dout = normal(3, 1, 2, seq_len, 8)

    def worker(transport: Transport) -> list[torch.Tensor]:
        index = torch.from_numpy(layout.owned[transport.rank].copy())
        leaves = [x.detach()[:, :, index].requires_grad_() for x in arrays]
        out = context_parallel_attention(
            *leaves, layout=layout, visibility=Visibility(), group=transport
        )
        out.backward(dout[:, :, index])
        return [out.detach(), *(x.grad for x in leaves if x.grad is not None)]

    out = torch.nn.functional.scaled_dot_product_attention(*arrays, is_causal=True)
    out.backward(dout)
    wanted = [out.detach(), *(x.grad for x in arrays if x.grad is not None)]
    for ref, *parts in zip(wanted, *run_threads(worker, 2, poison=True), strict=True):
        got = layout.unshard([part.numpy() for part in parts])
        # Up to 1500 terms of size 1, each with some roundings of 1e-16.
        assert np.abs(got - ref.numpy()).max() < 1e-11


class Careless(Math):
    """Right numbers in arrays that are not its own: views of inputs, and one used again."""

    def __init__(self) -> None:
        self.room: dict[tuple[int, ...], torch.Tensor] = {}

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rule: Rule) -> Stats:
        output, total, top = super().attend(q, k, v, rule)
        if k.shape[2] == 1 and rule.visible is None:  # one key: its value is the output
            return Stats(v, torch.ones(()).to(v.dtype).expand(top.shape), top)
        return Stats(output, total, top)

    def gradients(self, *arrays: Any) -> tuple[torch.Tensor, ...]:
        kept = []
        for name, share in enumerate(super().gradients(*arrays)):
            room = self.room.setdefault((name, *share.shape), torch.empty_like(share))
            kept.append(room.copy_(share))
        return tuple(kept)


def test_results_that_an_operation_does_not_give_away_are_not_changed() -> None:
    def worker(transport: Transport, kind: type[Math]) -> list[torch.Tensor]:
        q, k, v, dout = (normal(10 * n + transport.rank, 1, 2, 1, 4) for n in range(4))
        leaves = [x.requires_grad_() for x in (q, k, v)]
        out = context_parallel_attention(
            *leaves, layout=contiguous(3, 3), visibility=None, group=transport, block_op=kind()
        )
        return [out.detach(), *torch.autograd.grad(out, leaves, dout)]

    careful, careless = (run_threads(worker, 3, kind) for kind in (Math, Careless))
    for one, other in zip(careful, careless, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


class Reading(Math):
    """Notes how far apart in memory neighboring tokens of a head lie."""

    def __init__(self) -> None:
        self.strides: set[tuple[int, int]] = set()

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rule: Rule) -> Stats:
        self.strides.add((k.stride(2), v.stride(2)))
        return super().attend(q, k, v, rule)

    def gradients(self, q: Any, k: Any, v: Any, *rest: Any) -> tuple[torch.Tensor, ...]:
        self.strides.add((k.stride(2), v.stride(2)))
        return super().gradients(q, k, v, *rest)


@pytest.mark.parametrize("protocol", ["ring", "direct", "all_gather"])
def test_tokens_of_a_head_are_read_side_by_side_and_gradients_lie_as_written(
    protocol: str,
) -> None:
    """However the caller stores them: a kernel reads such keys fastest, and writes so."""

    def worker(transport: Transport) -> set[tuple[int, int]]:
        q, k, v = (normal(n, 1, 5, 3, 4).transpose(1, 2).requires_grad_() for n in range(3))
        op, layout = Reading(), contiguous(10, 2)
        out = context_parallel_attention(
            q, k, v, layout=layout, visibility=None, group=transport, protocol=protocol,
            block_op=op,
        )  # fmt: skip
        gradients = torch.autograd.grad(out, (k, v), torch.ones_like(out))
        assert all(x.stride(1) == 4 for x in gradients)  # heads side by side
        return op.strides

    assert run_threads(worker, 2) == [{(4, 4)}] * 2


def test_padding_that_was_first_met_in_inference_can_be_trained_with() -> None:
    """A tensor made in inference mode and kept would refuse to be part of a graph."""
    rule = Visibility(documents=np.array([0, 0, 0, 1, 1, 1, -1, -1]))

    def worker(transport: Transport) -> torch.Tensor:
        q, k, v = (normal(n, 1, 2, 4, 4).requires_grad_() for n in range(3))
        call = partial(
            context_parallel_attention, q, k, v, layout=layout, visibility=rule, group=transport
        )
        with torch.inference_mode():
            seen = call()
        out = call()
        assert torch.equal(out.detach(), seen)
        return torch.autograd.grad(out, q, torch.ones_like(out))[0]

    layout = contiguous(8, 2)
    gradients = run_threads(worker, 2)
    assert gradients[1][:, :, 2:].eq(0).all()
    assert gradients[0].abs().sum() > 0


@pytest.mark.parametrize("protocol", ["ring", "direct", "all_gather", "all_to_all"])
def test_keys_and_values_may_be_changed_after_the_call(protocol: str) -> None:
    def worker(transport: Transport, changed: bool) -> list[torch.Tensor]:
        q, k, v, dout = (normal(10 * n + transport.rank, 1, 2, 4, 4) for n in range(4))
        leaves = [x.requires_grad_() for x in (q, k, v)]
        keys, values = k * 1, v * 1
        out = context_parallel_attention(
            q, keys, values, layout=zigzag(8, 2), visibility=Visibility(), group=transport,
            protocol=protocol,
        )  # fmt: skip
        if changed:
            with torch.no_grad():
                keys.zero_()
                values.zero_()
        return list(torch.autograd.grad(out, leaves, dout))

    left, changed = (run_threads(worker, 2, each) for each in (False, True))
    for one, other in zip(left, changed, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_row_that_overflows_in_one_block_stays_an_overflow_after_another() -> None:
    """Row 0 of rank 0 sees only -inf in its own block, and nothing of the other.

    Rank 0 raises alone; the next phase of rank 1 ends with an error.
    """
    relation = np.eye(4, dtype=bool)
    relation[1, 2] = True

    def worker(transport: Transport) -> None:
        q = torch.ones(1, 1, 2, 2, dtype=torch.float64)
        k = q.clone()
        if transport.rank == 0:
            q[:, :, 0], k[:, :, 0] = 1e200, -1e200
        try:
            out = context_parallel_attention(
                q.requires_grad_(), k, k, layout=contiguous(4, 2), group=transport,
                visibility=Visibility(causal=False, relation=relation),
            )  # fmt: skip
            torch.autograd.grad(out.sum(), q)
        except (ValueError, PeerError) as error:
            told[transport.rank] = str(error)

    told: dict[int, str] = {}
    with pytest.raises(RuntimeError, match="messages that nobody took"):  # the words of rank 1
        run_threads(worker, 2, time_limit_s=4)
    assert "expected finite scores" in told[0]
    assert "agreement before backward" in told[1]
