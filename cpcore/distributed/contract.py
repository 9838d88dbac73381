"""What all ranks must agree on before a payload message is used.

Owns the exchange of a digest, and of the full text only when digests differ. A mismatch found
later would end in C++, or in numbers that mean nothing: here it is one ValueError on every rank.
The answers are waited for as late as possible: waiting at once would make every call a barrier.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from types import TracebackType

from cpcore.checks import expected
from cpcore.distributed import where
from cpcore.distributed.messages import PeerError, PendingWords
from cpcore.distributed.transport import Transport
from cpcore.layouts import Layout
from cpcore.masks import Visibility

TEXT_BYTES = 4096


class Agreement:
    """The ranks of a group about to enter one phase: each has told the others its facts.

    number: how many agreements the group has begun, the same on every rank. tag: of this phase's
    messages. Ranks that disagree use different tags, so that no message of theirs can meet.
    """

    def __init__(
        self,
        transport: Transport,
        phase: str,
        facts: Mapping[str, str],
        problem: ValueError | None = None,
    ) -> None:
        self.transport, self.phase, self.problem = transport, phase, problem
        self.number = transport.next_agreement()
        told = {"phase": phase, **facts, "agreement": f"number {self.number}"}
        self.told = {"facts": told, "problem": "" if problem is None else str(problem)}
        digest = hashlib.blake2b(repr(self.told).encode(), digest_size=16).digest()
        self.tag = int.from_bytes(digest[:4], "big") >> 1 | 1  # 0 is that of the words
        self.word = bytes([problem is not None]) + digest
        self.pending: PendingWords | None = transport.share(phase, self.word)
        # Where tags are not heeded, payload must wait; where something is wrong, none follows.
        if problem is not None or not transport.heeds_tags:
            self.close()

    def __enter__(self) -> Agreement:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Close, also if this rank fails: words that no one hears would meet the next agreement.

        Not after a message that was missed: then the group is lost, and a wait could be in vain.
        """
        if error is None:
            self.close()
        elif isinstance(error, Exception) and not isinstance(error, PeerError):
            step = where.last_step()
            with suppress(ValueError, RuntimeError):  # the rank's own error comes first
                self.close()
            where.step(step)  # where it failed

    def close(self) -> None:
        """Return once every rank is known to enter this phase with the same facts.

        Raises: the rank's own problem; else a ValueError that names the first rank with a problem,
            or the first fact in which two ranks differ, and what each of the two brought.
        """
        if self.pending is None:
            return
        pending, self.pending = self.pending, None  # once, also if it fails
        words = set(pending.wait())
        if self.problem is None and words == {self.word}:
            return
        padded = json.dumps(self.told).encode()[:TEXT_BYTES].ljust(TEXT_BYTES)
        told = [json.loads(word) for word in self.transport.share(self.phase, padded).wait()]
        if self.problem is not None:
            raise self.problem
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
