"""What chapter 7 says of PyTorch is what the pinned PyTorch says of itself."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from pybtex.database import parse_file

from scripts import pages

ENTRIES = parse_file(str(pages.BOOK / "references.bib")).entries


def torch_source(name: str) -> str:
    """A file of the installed PyTorch, read and not imported: that takes seconds."""
    spec = importlib.util.find_spec("torch")
    assert spec
    assert spec.origin
    return re.sub(r"\s+", " ", (Path(spec.origin).parent / name).read_text(encoding="utf-8"))


def test_checkpoint_restores_the_state_of_random_generators_by_default() -> None:
    pin = re.search(r"^torch==([\d.]+)$", (pages.ROOT / "requirements.txt").read_text(), re.M)
    assert pin
    assert ENTRIES["pytorch_checkpoint"].fields["version"] == pin[1]
    source = torch_source("utils/checkpoint.py")
    flags = re.findall(r'kwargs\.pop\("preserve_rng_state", (\w+)\)', source)
    assert flags
    assert set(flags) == {"True"}


def test_ddp_averages_gradients_so_those_of_a_summed_loss_are_too_small() -> None:
    source = torch_source("nn/parallel/distributed.py")
    assert "the gradient will be ``M`` times smaller" in source
    assert "because the gradients between different nodes are averaged" in source
