"""Some four thousand random runs of `simulate`: dense in longdouble, autograd for float64."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.support.plugin import SAID
from tests.support.random_runs import CELLS, LAYOUTS, RULES, Drawn, check, drawn

EACH_CELL = 29
SEEDS = range(EACH_CELL * len(CELLS))
PARTS = 16


@pytest.mark.parametrize("part", range(PARTS))
def test_output_lse_and_gradients_of_a_random_run_equal_dense_and_autograd(part: int) -> None:
    for seed in SEEDS[part::PARTS]:
        check(seed)


def traits(drawing: Drawn) -> list[str]:
    """What is special about a configuration."""
    seen, layout = drawing.problem.seen, drawing.layout
    partial = (e.step > 0 and e.verdict == "partial" for e in drawing.events)
    found = {
        "an empty rank": 0 in layout.lengths,
        "a row without keys": not seen.any(axis=-1).all(),
        "a partial block after step 0": any(partial),
        "R >= 3": layout.cp_size >= 3,
        "grouped heads": drawing.problem.q.shape[:-2] != drawing.problem.k.shape[:-2],
        "dropout": drawing.dropout is not None,
        "max_block cuts a shard": (drawing.max_block or 99) < max(layout.lengths),
        drawing.problem.q.dtype.name: True,
    }
    return [name for name, present in found.items() if present]


def test_the_random_runs_cover_every_cell_and_every_kind_of_case(
    record_property: Callable[[str, object], None],
) -> None:
    """Counted from the configurations that the other tests run, so it cannot drift from them."""
    cells: Counter[tuple[str, str, str]] = Counter()
    kinds: Counter[str] = Counter()
    for drawing in map(drawn, SEEDS):
        if drawing.layout.seq_len:
            cells[drawing.cell] += 1
        kinds.update(traits(drawing))
    lines = [f"{cells.total()} runs; by layout and rule, fewest of a protocol in brackets"]
    for kind in LAYOUTS:
        rows = [[cells[cell] for cell in CELLS if cell[:2] == (kind, rule)] for rule in RULES]
        lines.append(f"{kind:>13}  " + "  ".join(f"{sum(row):>4} ({min(row)})" for row in rows))
    lines.append("  ".join(f"{name}: {n / len(SEEDS):.0%}" for name, n in kinds.items()))
    record_property(SAID, "\n".join(lines))
    assert cells.total() >= 4000
    assert min(cells[cell] for cell in CELLS) >= 20
    for name in ("an empty rank", "a row without keys", "a partial block after step 0", "R >= 3"):
        assert kinds[name] >= 0.1 * len(SEEDS), name
    assert len(kinds) == 10
    assert min(kinds.values()) >= 0.1 * len(SEEDS)
