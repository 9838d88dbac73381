"""The tested code behind the book: exact attention over a sequence that is split across ranks.

The public names are re-exported here; each module says what it owns. Importing this package loads
numpy only, so that it also runs in a browser.
"""

from cpcore import (
    agreements,
    faults,
    loss,
    packing,
    pitfalls,
    positions,
    replay_faults,
    training_pitfalls,
)
from cpcore.chunks import (
    ChunkStats,
    attention_chunk_stats,
    empty_stats,
    finalize,
    merge_chunk_stats,
)
from cpcore.dense import dense_attention, dense_attention_backward
from cpcore.dropout import Dropout
from cpcore.layouts import (
    Layout,
    contiguous,
    from_lengths,
    from_owned,
    per_document,
    striped,
    zigzag,
)
from cpcore.ledger import LedgerRow, ledger
from cpcore.masks import Visibility
from cpcore.results import RankResult, Run
from cpcore.ring import ring_attention, simulate
from cpcore.schedule import Event, schedule

__version__ = "0.1.0"

__all__ = [
    "ChunkStats",
    "Dropout",
    "Event",
    "Layout",
    "LedgerRow",
    "RankResult",
    "Run",
    "Visibility",
    "__version__",
    "agreements",
    "attention_chunk_stats",
    "contiguous",
    "dense_attention",
    "dense_attention_backward",
    "empty_stats",
    "faults",
    "finalize",
    "from_lengths",
    "from_owned",
    "ledger",
    "loss",
    "merge_chunk_stats",
    "packing",
    "per_document",
    "pitfalls",
    "positions",
    "replay_faults",
    "ring_attention",
    "schedule",
    "simulate",
    "striped",
    "training_pitfalls",
    "zigzag",
]
