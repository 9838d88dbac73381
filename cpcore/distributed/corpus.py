"""The book's own prose as bytes: packed sequences of documents to train on.

Owns the text and how it is cut. Leaves out ranks: every rank count sees the same sequences.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpcore.checks import expected, whole_number
from cpcore.loss import next_token_labels
from cpcore.packing import pad_packed

Array = NDArray[Any]
BOOK = Path(__file__).resolve().parents[2] / "book"
VOCABULARY = 256  # a token is a byte
SHORTEST = 64  # bytes of a document; a heading alone teaches nothing
MULTIPLE = 8  # every document is padded to it, so that padding lies between documents


class Sequence(NamedTuple):
    """One packed sequence in logical order; padding has document -1, token 0 and no label.

    Shapes: tokens, documents and labels (S,).
    """

    tokens: Array
    documents: Array
    labels: Array


def prose(book: Path = BOOK) -> list[bytes]:
    """The text cells of the notebooks and the sections of the pages, in the order of their names.

    Raises: ValueError if the folder holds none.
    """
    texts: list[str] = []
    for path in sorted([*book.glob("*.ipynb"), *book.glob("*.md")]):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            texts += text.split("\n## ")
        else:
            cells = json.loads(text)["cells"]
            texts += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    documents = [text.encode() for text in texts if len(text.encode()) >= SHORTEST]
    if not documents:
        raise expected("book", "a folder with notebooks or pages", str(book))
    return documents


def check_length(seq_len: int) -> None:
    """Raise ValueError for a length that whole documents with their padding cannot fill."""
    if whole_number("seq_len", seq_len, 1) % MULTIPLE:
        raise expected("seq_len", f"a multiple of {MULTIPLE}", seq_len)


def sequences(documents: list[bytes], seq_len: int, seed: int) -> Iterator[Sequence]:
    """Packed sequences without end: documents in random order, the last of each sequence cut.

    What was cut off opens the next sequence, as a document of its own.

    Raises: ValueError for a length that is no multiple of MULTIPLE, or a seed below 0.
    """
    check_length(seq_len)
    rng = np.random.default_rng(whole_number("seed", seed, 0))
    waiting: deque[bytes] = deque()
    while True:
        parts, room = [], seq_len
        while room:
            if not waiting:
                waiting.extend(documents[i] for i in rng.permutation(len(documents)))
            document = waiting.popleft()
            parts.append(document[:room])
            if len(document) > room:
                waiting.appendleft(document[room:])
            room -= -(-len(parts[-1]) // MULTIPLE) * MULTIPLE
        yield _pack(parts)


def _pack(parts: list[bytes]) -> Sequence:
    packed = pad_packed(np.cumsum([0, *map(len, parts)]), MULTIPLE)
    tokens = packed.pad(np.frombuffer(b"".join(parts), np.uint8).astype(np.int64), axis=0)
    return Sequence(tokens, packed.documents, next_token_labels(tokens, packed.documents))
