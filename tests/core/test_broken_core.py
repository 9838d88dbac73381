"""A broken line in the core makes the tests fail: shown on copies with that line broken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cpcore

TESTS = Path(__file__).parent.parent
CHOSEN = [
    "test_chunks.py",
    "test_masks.py",
    "test_layouts.py",
    "test_field_bugs.py",
    "test_field_bugs_positions.py",
]
CHUNKS, LAYOUTS, MASKS, RING = "chunks.py", "layouts.py", "masks.py", "ring.py"
BREAKS = {
    "nothing": (CHUNKS, "", ""),
    "drop the rescale": (CHUNKS, "_weighted(acc, keep)", "_weighted(acc, np.ones_like(keep))"),
    "flip the sign": (CHUNKS, "np.exp(acc_max - safe)", "np.exp(safe - acc_max)"),
    "skip the -inf case": (CHUNKS, "safe = finite_or_zero(top)\n", "safe = top\n"),
    "let the future in": (MASKS, "behind >= 0 if", "behind >= -1 if"),
    "restore by the permutation": (LAYOUTS, "np.argsort(self.permutation)", "self.permutation"),
    "skip the last chunk": (RING, "in zip(chunks, k_pos,", "in zip(chunks[:-1], k_pos[:-1],"),
}


def run_on_copy(folder: Path, module: str, old: str, new: str) -> subprocess.CompletedProcess[str]:
    """The chosen tests in a fresh process, against a copy of the package with one line changed."""
    package = folder / "cpcore"
    ignored = shutil.ignore_patterns("ui", "distributed", "__pycache__")
    shutil.copytree(Path(cpcore.__file__).parent, package, ignore=ignored)
    source = (package / module).read_text(encoding="utf-8")
    if old:
        assert source.count(old) == 1, f"{module} has no such line, or several: {old}"
        (package / module).write_text(source.replace(old, new), encoding="utf-8")
    shutil.copytree(TESTS / "support", folder / "tests" / "support", ignore=ignored)
    for name in CHOSEN:
        shutil.copy(TESTS / "core" / name, folder / "tests")
    probe = (
        "import cpcore, pytest, sys; print(cpcore.__file__); sys.exit(pytest.main(sys.argv[1:]))"
    )
    options = ["-q", "-x", "--assert=plain", "-p", "no:cacheprovider", "-c", os.devnull]
    # Without other plugins a process starts in a fraction of the time.
    apart = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    return subprocess.run(
        [sys.executable, "-c", probe, *options, "--rootdir", str(folder), str(folder / "tests")],
        cwd=folder,
        env={**os.environ, **apart, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_line_fails_the_tests_and_an_unbroken_copy_passes(
    name: str, tmp_path: Path
) -> None:
    done = run_on_copy(tmp_path, *BREAKS[name])
    assert str(tmp_path) in done.stdout, "the copy was not the package under test"
    assert done.returncode == (0 if name == "nothing" else 1), done.stdout + done.stderr
