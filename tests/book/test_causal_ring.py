"""What chapter 4 says of PyTorch is what the pinned PyTorch does."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tests.book.test_pages import sources


def distributed() -> Path:
    spec = importlib.util.find_spec("torch")  # read, not imported: that takes seconds
    assert spec
    assert spec.origin
    return Path(spec.origin).parent / "distributed"


def test_its_ring_skips_by_rank_number_and_has_another_rule_for_balanced_shards() -> None:
    assert "Both have another rule for balanced shards" in sources()["04_causal_ring.ipynb"]
    code = (distributed() / "tensor/experimental/_context_parallel/_attention.py").read_text()
    assert "source_rank = (rank - i) % world_size" in code
    assert "if source_rank < rank or _cp_options.enable_load_balance:" in code
    loop = code.split("for i in range(size):")[1]
    assert loop.index("exchange_buffers") < loop.index("_CausalBehavior.SKIP")  # sent, then skipped


def test_a_batch_of_sends_and_receives_cannot_deadlock_by_its_order() -> None:
    code = (distributed() / "distributed_c10d.py").read_text(encoding="utf-8")
    text = " ".join(code.split("def batch_isend_irecv")[1][:1200].split())
    assert "the relative ordering of sends vs. receives" in text
    assert "will not cause deadlocks" in text
