"""Faults of the exchange, on purpose: the output is right, and the gradients are not.

Owns what a report of a real run shows beside the right one. Each overrides one decision of
`Exchange`; the names are those of `simulate`.
"""

from torch import Tensor

from cpcore.checks import expected, whole_number
from cpcore.distributed.protocols import Exchange
from cpcore.schedule import Event

# What still equals the right result: as `cpcore.faults.AGREES`, on generic inputs, R ≥ 2.
AGREES = {
    "lost_return": frozenset({"output", "loss", "dq"}),
    "stale_kv": frozenset({"output", "loss"}),
}


class LostReturn(Exchange):
    """WRONG: what rank lost[0] sends home for the keys of lost[1] arrives as zero.

    Backward: dK and dV of that owner miss the share; dQ is right. Hidden where the share is zero,
    as under a causal mask by which no row of the sender sees a key of the owner.
    """

    lost: tuple[int, int]

    def returned(self, event: Event, share: Tensor) -> Tensor:
        """Zeros in place of the share, if it is the lost one."""
        mine = (self.transport.rank, event.owner) == self.lost
        return share.new_zeros(share.shape) if mine else share


class StaleKv(Exchange):
    """WRONG: every step of the backward pass works on the rank's own keys and values.

    As if the buffer of step 0 were read again, whatever has arrived since. Needs shards of one
    length. Hidden where all ranks hold the same keys and values, and at R = 1.
    """

    def replayed(self, block: Tensor, own: Tensor) -> Tensor:
        """The own block."""
        if block.shape != own.shape:
            raise expected("layout", "shards of one length for this fault", "others")
        return own


def exchange_with(fault: str | tuple[str, int, int] | None, cp_size: int) -> type[Exchange]:
    """The exchange that commits ("lost_return", rank, owner) or "stale_kv"; None = the right one.

    Raises: ValueError for another name, or ranks that do not exist.
    """
    if fault is None:
        return Exchange
    if fault == "stale_kv":
        return StaleKv
    if not isinstance(fault, tuple) or len(fault) != 3 or fault[0] != "lost_return":
        wanted = "('lost_return', rank, owner), 'stale_kv' or None"
        raise expected("fault", wanted, repr(fault))
    for name, rank in zip(("rank", "owner"), fault[1:], strict=True):
        if whole_number(f"fault {name}", rank, 0) >= cp_size:
            raise expected(f"fault {name}", f"a rank below {cp_size}", rank)
    return type("LostReturn", (LostReturn,), {"lost": fault[1:]})
