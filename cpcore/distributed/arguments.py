"""The arguments of one call, checked: everything but the arrays, and what ranks must agree on.

Owns the checks that a rank can make alone. `contract` carries their verdict to the others.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from cpcore.attention_checks import score_scale
from cpcore.checks import Array, expected
from cpcore.distributed.block_ops import BlockOp, choose
from cpcore.distributed.blocks import Kind
from cpcore.distributed.contract import layout_name, visibility_name
from cpcore.distributed.transport import Transport
from cpcore.dropout import Dropout
from cpcore.layouts import Layout
from cpcore.masks import Visibility
from cpcore.planner.heads import head_degrees
from cpcore.schedule import PROTOCOLS as SCHEDULED

PROTOCOLS = (*SCHEDULED, "all_to_all")
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
Arrays = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class Call:
    """One rank's call, without its arrays."""

    transport: Transport
    layout: Layout
    visibility: Visibility | None
    protocol: str
    scale: float
    dropout: Dropout | None
    ops: Mapping[Kind, BlockOp]
    facts: Mapping[str, str]

    @property
    def rank(self) -> int:
        """The rank that calls."""
        return self.transport.rank

    @property
    def rule(self) -> Visibility:
        """The visibility, also where none was given."""
        return Visibility(causal=False) if self.visibility is None else self.visibility

    def clean(self, array: Tensor) -> Tensor:
        """The array with padding slots set to zero, so that NaN there reaches nothing."""
        slots = _padding_slots(self.visibility, self.layout, self.rank)
        if slots is None:
            return array
        return array.masked_fill(torch.from_numpy(slots)[:, None].to(array.device), 0)

    def check_finite(self, argument: str, array: Tensor) -> None:
        """Raise for NaN or infinity in a slot that is not padding."""
        if not _finite(self.clean(array)):
            raise expected(argument, "finite numbers in every used slot", "NaN or infinity")


# An array of numpy: a tensor made in inference mode could not take part in training later.
@lru_cache(maxsize=64)
def _padding_slots(visibility: Visibility | None, layout: Layout, rank: int) -> Array | None:
    """Bool (c,), True in the padding slots of the rank; None if it has none."""
    if visibility is None:
        return None
    slots = visibility.padding(layout.owned[rank])
    return slots if slots.any() else None


def _finite(array: Tensor) -> bool:
    """Whether all numbers are finite: then so is their sum, which is fast, unless it overflows."""
    array = array.detach()
    return math.isfinite(array.sum()) or bool(torch.isfinite(array).all())


def checked_call(
    arrays: Arrays,
    transport: Transport,
    layout: Layout,
    visibility: Visibility | None,
    protocol: str,
    scale: float | None,
    dropout: Dropout | None,
    block_op: BlockOp | None,
) -> Call:
    """The call, if this rank's arguments are right.

    Raises: ValueError for whatever the rank can see to be wrong by itself.
    """
    if not isinstance(layout, Layout):
        raise expected("layout", "a Layout", type(layout).__name__)
    if visibility is not None and not isinstance(visibility, Visibility):
        raise expected("visibility", "a Visibility or None", type(visibility).__name__)
    if dropout is not None and not isinstance(dropout, Dropout):
        raise expected("dropout", "a Dropout or None", type(dropout).__name__)
    if block_op is not None and not hasattr(block_op, "takes"):
        raise expected("block_op", "a BlockOp or None", type(block_op).__name__)
    if layout.cp_size != transport.cp_size:
        raise expected("layout", f"{transport.cp_size} ranks like the group", layout.cp_size)
    check_protocol(protocol)
    _check_arrays(arrays, layout.lengths[transport.rank], transport)
    query, key, value = arrays
    factor = score_scale(scale, query.shape[-1])
    gradients = torch.is_grad_enabled() and any(x.requires_grad for x in arrays)
    sizes = query.shape[:2], key.shape[:2], query.shape[-1], value.shape[-1]
    facts = {
        "layout": layout_name(layout),
        "visibility": visibility_name(visibility),
        "protocol": str(protocol),
        "dtype": str(query.dtype),
        "shapes": "query {} heads of {}, key {}, widths {} and {}".format(
            *(query.shape[1], query.shape[0], key.shape[1], sizes[2], sizes[3])
        ),
        "scale": repr(factor),
        "dropout": repr(dropout),
        "requires_grad": str(gradients),
    }
    if protocol == "all_to_all":
        check_heads(query.shape[1], key.shape[1], layout.cp_size)
    ops = choose(block_op, query, value, factor, dropout is not None)
    call = Call(transport, layout, visibility, protocol, factor, dropout, ops, facts)
    for name, array in zip(("query", "key", "value"), arrays, strict=True):
        call.check_finite(name, array)
    return call


def check_protocol(protocol: object) -> None:
    """Raise ValueError for a name that is none of PROTOCOLS."""
    if not isinstance(protocol, str) or protocol not in PROTOCOLS:
        raise expected("protocol", f"one of {', '.join(PROTOCOLS)}", repr(protocol))


def check_heads(q_heads: int, kv_heads: int, cp_size: int) -> None:
    """Raise ValueError unless all_to_all can divide the heads among the ranks."""
    degrees = head_degrees(q_heads, kv_heads)
    if cp_size not in degrees:
        allowed = " or ".join(map(str, degrees))
        wanted = f"one that divides {q_heads} query heads over {kv_heads} among {cp_size} ranks"
        raise expected("protocol", wanted, f"all_to_all, which takes {allowed} ranks")


def _check_arrays(arrays: Arrays, tokens: int, transport: Transport) -> None:
    """Raise unless the three are shards of one attention."""
    for name, array in zip(("query", "key", "value"), arrays, strict=True):
        if not isinstance(array, Tensor) or array.dtype not in DTYPES:
            received = getattr(array, "dtype", type(array).__name__)
            raise expected(name, "a float16, bfloat16, float32 or float64 tensor", received)
        if array.layout != torch.strided:
            raise expected(name, "a dense tensor", array.layout)
        if array.ndim != 4 or array.shape[2] != tokens or 0 in (array.shape[1], array.shape[3]):
            wanted = f"shape (B, heads, {tokens}, width) like the layout"
            raise expected(name, wanted, tuple(array.shape))
        if (array.dtype, array.device) != (arrays[0].dtype, arrays[0].device):
            wanted = f"{arrays[0].dtype} on {arrays[0].device} like query"
            raise expected(name, wanted, f"{array.dtype} on {array.device}")
    query, key, value = arrays
    if key.shape[0] != query.shape[0] or key.shape[3] != query.shape[3]:
        wanted = f"batch {query.shape[0]} and width {query.shape[3]} like query"
        raise expected("key", wanted, tuple(key.shape))
    if query.shape[1] % key.shape[1]:
        raise expected("key", f"a head count that divides {query.shape[1]}", key.shape[1])
    if value.shape[:3] != key.shape[:3]:
        raise expected("value", f"shape {(*key.shape[:3], 'Dv')}", tuple(value.shape))
    if not transport.carries(query.device):
        raise expected("query", f"a tensor on {transport.device} like the group", query.device)
