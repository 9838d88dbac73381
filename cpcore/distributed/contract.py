"""What all ranks must agree on before the first payload message.

Owns the exchange of a digest, and of the full text only when digests differ. A mismatch found
later would end in C++, or in numbers that mean nothing: here it is one ValueError on every rank.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from itertools import count

from cpcore.checks import expected
from cpcore.distributed.transport import Transport
from cpcore.layouts import Layout
from cpcore.masks import Visibility

TEXT_BYTES = 4096
_numbers = count(1)


def agree(
    transport: Transport,
    phase: str,
    facts: Mapping[str, str],
    problem: ValueError | None = None,
) -> int:
    """Return if every rank is about to enter this phase with the same facts and no problem.

    The result is a number that rank 0 has given to no phase before, the same on every rank.

    Raises: the rank's own problem; else a ValueError that names the first rank with a problem, or
        the first fact in which two ranks differ, and what each of the two brought.
    """
    if transport.cp_size == 1:
        if problem is not None:
            raise problem
        return next(_numbers)
    told_by_us = {"phase": phase, **facts}
    text = json.dumps({"facts": told_by_us, "problem": "" if problem is None else str(problem)})
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    said = bytes([problem is not None]) + digest
    words = transport.share(phase, said + next(_numbers).to_bytes(8, "big"))
    told_by_all = {word[: len(said)] for word in words}
    if told_by_all == {b"\0" + digest}:
        return int.from_bytes(words[0][len(said) :], "big")
    padded = text.encode()[:TEXT_BYTES].ljust(TEXT_BYTES)
    told = [json.loads(word) for word in transport.share(phase, padded)]
    if problem is not None:
        raise problem
    for rank, other in enumerate(told):
        if other["problem"]:
            raise ValueError(f"{other['problem']} (on rank {rank})")
    raise _difference([other["facts"] for other in told])


def _difference(told: list[dict[str, str]]) -> ValueError:
    """The first fact in which a rank differs from rank 0."""
    for rank, facts in enumerate(told):
        for name in [*told[0], *facts]:
            ours, theirs = told[0].get(name, "nothing"), facts.get(name, "nothing")
            if ours != theirs:
                return expected(name, f"{ours} as on rank 0", f"{theirs} on rank {rank}")
    raise AssertionError("digests differ although the facts are equal")


@lru_cache(maxsize=64)
def layout_name(layout: Layout) -> str:
    """Lengths for a reader, and a digest of every position."""
    lengths = ", ".join(map(str, layout.lengths[:16]))
    cuts = repr(layout.lengths).encode()  # one permutation can be cut in several ways
    return f"lengths ({lengths}), positions {_digest(layout.permutation.tobytes() + cuts)}"


@lru_cache(maxsize=64)
def visibility_name(rule: Visibility | None) -> str:
    """The rule for a reader; documents and relation by their digest."""
    if rule is None:
        return "full"
    parts = [f"causal {rule.causal}", f"window {rule.window}"]
    for name, array in (("documents", rule.documents), ("relation", rule.relation)):
        if array is not None:
            parts.append(f"{name} {_digest(array.tobytes())}")
    return ", ".join(parts)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=6).hexdigest()
