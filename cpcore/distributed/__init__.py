"""The schedule on real processes: attention over a sequence that `torch.distributed` splits.

The public names are re-exported here; each module says what it owns. Only this package imports
torch, and `import cpcore` does not import this package.
"""

from cpcore.distributed.attention import context_parallel_attention
from cpcore.distributed.block_ops import FLASH_CPU, FLASH_CUDA, MATH, BlockOp
from cpcore.distributed.group import GroupTransport
from cpcore.distributed.launch import RankError, launch
from cpcore.distributed.messages import Message, PeerError, Record
from cpcore.distributed.threads import Switchboard, ThreadTransport, run_threads
from cpcore.distributed.transport import Transport

__all__ = [
    "FLASH_CPU",
    "FLASH_CUDA",
    "MATH",
    "BlockOp",
    "GroupTransport",
    "Message",
    "PeerError",
    "RankError",
    "Record",
    "Switchboard",
    "ThreadTransport",
    "Transport",
    "context_parallel_attention",
    "launch",
    "run_threads",
]
