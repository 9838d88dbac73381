"""The house rules of the package: imports go down only, a light import, a small reading core."""

import ast
import io
import itertools
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

import cpcore

PACKAGE = Path(cpcore.__file__).parent
READING_CORE = ("dense", "masks", "chunks", "layouts", "schedule", "ring", "replay", "ledger")
# What each module may import of ours. A new module needs a line here: that is the point.
MAY_IMPORT: dict[str, set[str]] = {
    "checks": set(),
    "oracle_inputs": set(),
    "dense": {"oracle_inputs"},  # the oracle shares no code with what it checks
    "masks": {"checks"},
    "layouts": {"checks"},
    "grouping": {"checks"},
    "attention_checks": {"checks"},
    "chunks": {"attention_checks", "checks", "grouping"},
    "dropout": {"checks"},
    "loss": {"checks"},
    "packing": {"checks"},
    "positions": {"checks"},
    "work": {"checks", "masks"},
    "schedule": {"checks", "layouts", "masks", "work"},
    "event_checks": {"checks", "layouts", "masks", "schedule"},
    "ledger": {"checks", "event_checks", "layouts", "schedule"},
    "exchange": {"checks", "schedule"},
    "replay": {"checks", "chunks", "exchange", "grouping", "schedule"},
    "results": {"checks", "layouts", "schedule"},
    "simulation": {
        "checks", "chunks", "dropout", "exchange", "layouts", "masks", "replay", "schedule",
    },
    "chunk_inputs": {"attention_checks", "checks", "layouts", "masks"},
    "ring": {
        "attention_checks", "checks", "chunk_inputs", "chunks", "dropout", "event_checks",
        "exchange", "layouts", "masks", "replay", "results", "schedule", "simulation",
    },
    "agreements": set(),
    "pitfalls": {"checks", "chunk_inputs", "chunks", "masks"},
    "training_pitfalls": {"checks", "layouts", "loss", "positions"},
    "faults": {"checks", "chunks", "masks", "pitfalls", "schedule", "simulation"},
    "replay_faults": {"checks", "chunks", "exchange", "faults", "schedule", "simulation"},
    "planner.arguments": {"checks"},
    "planner.shapes": {"checks", "planner.arguments"},
    "planner.presets": {"planner.arguments", "planner.shapes"},
    "planner.memory": {"checks", "planner.arguments", "planner.shapes"},
    "planner.traffic": {"checks", "planner.arguments"},
    "planner.heads": {"checks", "planner.arguments", "planner.traffic"},
    "planner.work": {"checks", "planner.arguments", "planner.shapes"},
    "planner.overlap": {"checks", "planner.arguments", "planner.shapes", "planner.work"},
    "planner.plans": {
        "checks", "planner.arguments", "planner.heads", "planner.overlap", "planner.shapes",
        "planner.traffic", "planner.work",
    },
    "planner.serving": {"checks", "planner.arguments", "planner.shapes"},
    "planner.conditions": {
        "checks", "planner.arguments", "planner.memory", "planner.overlap", "planner.shapes",
    },
    "planner": {
        "planner.conditions", "planner.heads", "planner.memory", "planner.overlap",
        "planner.plans", "planner.presets", "planner.serving", "planner.shapes",
        "planner.traffic", "planner.work",
    },
    "interview.units": {"checks"},
    "interview.judge": {"interview.units"},
    "interview.counting": {"layouts", "ledger", "loss", "masks", "schedule"},
    "interview.numerics": {"chunks", "dense"},
    "interview.expressions": {
        "checks", "interview.counting", "interview.numerics", "planner",
    },
    "interview.schema": {"interview.expressions", "interview.units"},
    "interview.bank": {"checks", "interview.schema"},
    "interview.drill_base": {"interview.judge", "planner"},
    "interview.drill_memory": {
        "interview.drill_base", "interview.judge", "interview.units", "planner",
    },
    "interview.drill_time": {
        "interview.drill_base", "interview.judge", "interview.units", "planner",
    },
    "interview.drill_work": {"interview.drill_base", "interview.judge", "planner"},
    "interview.drills": {
        "checks", "interview.drill_base", "interview.drill_memory", "interview.drill_time",
        "interview.drill_work",
    },
    "interview.command": {"interview.drill_base", "interview.drills"},
    "interview.diagnosis_base": set(),
    "interview.diagnosis_results": {
        "dense", "interview.diagnosis_base", "layouts", "masks", "ring",
    },
    "interview.diagnosis_times": {
        "checks", "interview.diagnosis_base", "layouts", "masks", "planner", "schedule",
    },
    "interview.diagnosis": {
        "checks", "interview.diagnosis_base", "interview.diagnosis_results",
        "interview.diagnosis_times",
    },
    "interview.page_data": {
        "interview.bank", "interview.diagnosis", "interview.drill_base", "interview.drills",
        "interview.judge", "interview.schema", "interview.units",
    },
    "interview": {
        "interview.bank", "interview.diagnosis", "interview.diagnosis_base",
        "interview.diagnosis_times", "interview.drill_base", "interview.drills",
        "interview.expressions", "interview.judge", "interview.schema", "interview.units",
    },
    "__init__": {
        "agreements", "chunks", "dense", "dropout", "faults", "layouts", "ledger", "loss", "masks",
        "packing", "pitfalls", "positions", "replay_faults", "results", "ring",
        "schedule", "training_pitfalls",
    },
}  # fmt: skip
# The torch layer stands on the whole core; among themselves its modules may import only these.
DISTRIBUTED: dict[str, set[str]] = {
    "messages": {"where"},
    "transport": {"messages", "where"},
    "courier": set(),
    "group": {"courier", "messages", "transport", "where"},
    "threads": {"messages", "transport"},
    "contract": {"messages", "transport", "where"},
    "state": set(),
    "scores": {"state"},
    "blocks": set(),
    "block_ops": {"blocks", "scores", "state"},
    "plan": {"blocks"},
    "homecoming": {"messages", "plan", "state"},
    "protocols": {"contract", "homecoming", "messages", "plan", "transport", "where"},
    "rank": {"block_ops", "blocks", "state"},
    "arguments": {"block_ops", "blocks", "contract", "transport"},
    "passes": {"arguments", "contract", "plan", "protocols", "rank", "state"},
    "heads": {"arguments", "contract", "messages", "plan", "rank"},
    "attention": {
        "arguments", "block_ops", "contract", "group", "heads", "passes", "protocols", "transport",
    },
    "faults": {"protocols"},
    "where": set(),
    "child": {"where"},
    "torchrun": {"where"},
    "launch": {"child", "torchrun", "transport", "where"},
    "corpus": set(),
    "model": set(),
    "recipe": {"arguments", "corpus", "model"},
    "training": {"attention", "corpus", "faults", "group", "model", "recipe", "where"},
    "console": {"launch", "messages", "torchrun"},
    "train": {"arguments", "console", "corpus", "launch", "recipe", "torchrun", "training"},
    "player": {"where"},
    "lab_cells": set(),
    "lab_ranks": {"attention", "lab_cells", "faults", "group", "player"},
    "lab": {"console", "lab_cells", "lab_ranks", "launch", "torchrun"},
    "bounds": set(),
    "cases": {"bounds"},
    "verify": {
        "arguments", "attention", "bounds", "cases", "console", "group", "launch", "torchrun",
        "where",
    },
    "__init__": {"attention", "block_ops", "group", "launch", "messages", "threads", "transport"},
}  # fmt: skip
WRONG_ON_PURPOSE = {"agreements", "pitfalls", "training_pitfalls", "faults", "replay_faults"}
STANDARD = set(sys.stdlib_module_names)


def core_modules() -> list[Path]:
    return sorted(
        [*PACKAGE.glob("*.py"), *PACKAGE.glob("planner/*.py"), *PACKAGE.glob("interview/*.py")]
    )


def torch_modules() -> list[Path]:
    return sorted(PACKAGE.glob("distributed/*.py"))


def module_name(path: Path) -> str:
    """Name below the package: "ring", "planner.work", and "planner" for its __init__."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[0] != parts[-1] == "__init__" else parts)


def imports_of(source: str) -> set[str]:
    """Absolute names of every module that the source imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer"
            module = node.module or ""
            package = module in {"cpcore", "cpcore.distributed"}
            names |= {f"{module}.{a.name}" for a in node.names} if package else {module}
    return names


def test_the_import_walk_sees_every_form_of_import() -> None:
    source = "import a.b\ndef f():\n    from cpcore import ring\n    from cpcore.masks import x"
    assert imports_of(source) == {"a.b", "cpcore.ring", "cpcore.masks"}


@pytest.mark.parametrize("path", core_modules(), ids=module_name)
def test_a_core_module_imports_numpy_the_standard_library_and_what_lies_below(path: Path) -> None:
    for name in imports_of(path.read_text(encoding="utf-8")):
        root, *rest = name.split(".")
        if root == "cpcore":
            below = MAY_IMPORT[module_name(path)]
            assert ".".join(rest) in below, f"{module_name(path)} imports {name}"
        else:
            assert root == "numpy" or root in STANDARD, f"{module_name(path)} imports {name}"


@pytest.mark.parametrize("path", torch_modules(), ids=lambda path: path.stem)
def test_a_module_of_the_torch_layer_imports_the_core_torch_and_what_lies_below(path: Path) -> None:
    for name in imports_of(path.read_text(encoding="utf-8")):
        root, *rest = name.split(".")
        if root == "cpcore" and rest[0] == "distributed":
            assert rest[1] in DISTRIBUTED[path.stem], f"{path.stem} imports {name}"
        elif root == "cpcore":
            assert ".".join(rest) in MAY_IMPORT, f"{path.stem} imports {name}"
        else:
            assert root in {"numpy", "torch"} | STANDARD, f"{path.stem} imports {name}"


def heights(waiting: dict[str, set[str]]) -> dict[str, int]:
    """How many layers lie below each module; fails on a cycle."""
    height: dict[str, int] = {}
    waiting = dict(waiting)
    while waiting:
        ready = [name for name, below in waiting.items() if below <= height.keys()]
        assert ready, f"a cycle among {sorted(waiting)}"
        for name in ready:
            height[name] = 1 + max((height[b] for b in waiting.pop(name)), default=0)
    return height


def test_the_allowed_imports_have_no_cycle() -> None:
    heights(DISTRIBUTED)
    height = heights(MAY_IMPORT)
    assert height["checks"] < height["masks"] < height["work"] < height["schedule"]
    assert height["schedule"] < height["exchange"] < height["replay"] < height["simulation"]
    assert height["simulation"] < height["ring"] < height["__init__"]


def everything_below(name: str) -> set[str]:
    """What a module may import, directly or through others."""
    return MAY_IMPORT[name].union(*map(everything_below, MAY_IMPORT[name]))


def test_masks_know_no_ranks_and_layouts_know_no_masks() -> None:
    assert everything_below("masks") == everything_below("layouts") == {"checks"}
    assert everything_below("work") == {"checks", "masks"}
    assert everything_below("dense") == {"oracle_inputs"}


def test_what_is_computed_by_events_knows_no_query_key_or_value() -> None:
    """Events carry positions and counts: schedule and ledger cannot look into an array."""
    arrays = {"chunks", "dense", "exchange", "replay", "simulation", "ring"}
    assert not arrays & (everything_below("schedule") | everything_below("ledger"))


def test_closed_forms_know_no_array_and_no_event() -> None:
    """An estimate that called the schedule could not check it."""
    below = {name for name in everything_below("planner") if not name.startswith("planner.")}
    assert below == {"checks"}
    for path in PACKAGE.glob("planner/*.py"):
        assert "numpy" not in imports_of(path.read_text(encoding="utf-8")), path.stem


def test_nothing_right_rests_on_what_is_wrong_on_purpose() -> None:
    for name in MAY_IMPORT.keys() - WRONG_ON_PURPOSE - {"__init__"}:
        assert not everything_below(name) & WRONG_ON_PURPOSE, name


def test_importing_the_package_loads_neither_torch_nor_plotting_nor_widgets() -> None:
    code = "import sys, cpcore, cpcore.pitfalls; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())
    assert {"cpcore.ring", "numpy"} <= loaded
    heavy = {"torch", "matplotlib", "ipywidgets", "IPython", "traitlets"}
    assert not loaded & heavy
    assert not {name for name in loaded if name.startswith(("cpcore.ui", "cpcore.distributed"))}


def lines_of_code(source: str) -> int:
    """Lines that hold code: without docstrings, comments and blank lines, which help the reader."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING):
            code |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node) is not None:
            code -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(code)


def test_the_line_counter_leaves_out_docstrings_comments_and_blank_lines() -> None:
    source = '"""A.\n\nB."""\n\n# c\nx = """d\ne"""  # f\n\ndef g():\n    """H."""\n    return 1\n'
    assert lines_of_code(source) == 4


def test_the_reading_core_fits_in_700_lines_and_no_module_exceeds_200() -> None:
    total = 0
    for path in [*core_modules(), *torch_modules()]:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 200, path.stem
        if path.parent == PACKAGE and path.stem in READING_CORE:
            total += lines_of_code("\n".join(lines))
    assert 500 < total <= 700


def test_no_core_function_is_longer_than_40_lines() -> None:
    """Docstrings do not count: they explain, the body is what must be held in the head."""
    seen = 0
    for path in [*core_modules(), *torch_modules()]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                first = node.body[1] if ast.get_docstring(node) and node.body[1:] else node.body[0]
                assert (node.end_lineno or 0) - first.lineno < 40, f"{path.stem}.{node.name}"
                seen += 1
    assert seen > 50


def test_every_public_name_is_exported_documented_and_typed() -> None:
    for name in cpcore.__all__:
        thing = getattr(cpcore, name)
        if name != "__version__":
            assert (thing.__doc__ or "").strip(), name
    for path in [*core_modules(), *torch_modules()]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        for node in itertools.chain(tree.body, *(each.body for each in classes)):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                assert node.returns is not None, f"{path.stem}.{node.name}"
                # A fault's method replaces one of `Simulation`, which says what it does.
                override = path.stem in WRONG_ON_PURPOSE and node not in tree.body
                assert override or ast.get_docstring(node), f"{path.stem}.{node.name}"
