"""What the site hosts of Python for the page, and what the build does without it."""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
import zipfile
from pathlib import Path

import pytest

from scripts import assets, build, pyodide_assets


def test_only_the_packages_wanted_and_what_they_need_are_hosted() -> None:
    lock = {"packages": {name: {"depends": list(needs)} for name, needs in
                         {"plot": "cn", "c": "n", "n": "", "other": "n"}.items()}}  # fmt: skip
    assert list(pyodide_assets.needed(lock, ["n"])) == ["n"]
    assert list(pyodide_assets.needed(lock, ["plot"])) == ["c", "n", "plot"]


@pytest.fixture
def python() -> dict[str, bytes]:
    """A tiny Python for the page."""
    entry = {"name": "kit", "version": "1", "file_name": "a.whl", "sha256": ""}
    info = {"version": "0.27.7", "python": "3.12.7"}
    lock = json.dumps({"info": info, "packages": {"kit": entry}})
    return {"pyodide-lock.json": lock.encode(), "a.whl": b"wheel"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source tree with a package, and a stale copy of it under `build/`."""
    for name in ("cpcore/__init__.py", "cpcore/ui/svg.py", "build/lib/cpcore/old.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"name = {name!r}\n")
    (tmp_path / "cpcore/__pycache__").mkdir()
    (tmp_path / "cpcore/__pycache__/svg.pyc").write_bytes(b"")
    return tmp_path


def test_the_zip_holds_every_module_of_the_source_tree_and_is_the_same_each_time(
    source: Path,
) -> None:
    packed = pyodide_assets.source_zip(source / "cpcore")
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.namelist() == ["cpcore/__init__.py", "cpcore/ui/svg.py"]
        assert archive.read("cpcore/ui/svg.py") == b"name = 'cpcore/ui/svg.py'\n"
    (source / "cpcore/ui/svg.py").touch()
    assert pyodide_assets.source_zip(source / "cpcore") == packed


def test_the_manifest_tells_sizes_and_changes_with_the_sources(
    python: dict[str, bytes], source: Path
) -> None:
    files = pyodide_assets.for_site(python, source)
    manifest = json.loads(files["manifest.json"])
    assert manifest["packages"] == {"kit": "1"}
    del files["manifest.json"]
    assert manifest["files"] == {name: len(content) for name, content in files.items()}
    assert manifest["sums"] == {n: hashlib.sha256(c).hexdigest() for n, c in files.items()}
    files = pyodide_assets.for_site(python, source)
    assert pyodide_assets.version(files) == pyodide_assets.version(
        pyodide_assets.for_site(python, source)
    )
    (source / "cpcore/ui/svg.py").write_text("name = None\n")
    changed = pyodide_assets.for_site(python, source)
    assert pyodide_assets.version(changed) != pyodide_assets.version(files)
    assert pyodide_assets.version({}) == ""


def refuse() -> dict[str, bytes]:
    raise assets.AssetError("Python for the page: no source has a.whl. Asked were:\n  x: y")


def test_without_a_source_the_book_is_built_and_says_so_and_on_ci_it_fails(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build.pyodide_assets, "ensure", refuse)
    monkeypatch.delenv("CI", raising=False)
    assert build.page_python(source) == {}
    assert capsys.readouterr().out == (
        "Python for the page: no source has a.whl. Asked were:\n  x: y\n"
        "The book is built without Run buttons.\n"
    )
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(sys, "argv", ["build", "--source", str(source)])
    with pytest.raises(
        SystemExit, match="Hosted files are missing: Python for the page: no source"
    ):
        build.main()


def test_the_build_copies_python_into_the_site_and_tells_the_extension(
    python: dict[str, bytes], source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def sphinx(source: Path, scratch: Path, live: str) -> None:
        told.append(live)
        (scratch / "_build/html").mkdir(parents=True)

    monkeypatch.setattr(build, "run_sphinx", sphinx)
    monkeypatch.setattr(build, "missing_pages", lambda source: [])
    monkeypatch.setattr(build.check_site, "check_site", lambda built: [])
    files = pyodide_assets.for_site(python, source)
    build.build(source, source / "out", files)
    found = {path.name: path.read_bytes() for path in (source / "out/pyodide").iterdir()}
    assert found == files
    build.build(source, source / "out")
    assert not list((source / "out").iterdir())
    assert told == [pyodide_assets.version(files), ""]


def test_another_python_makes_another_site(python: dict[str, bytes], source: Path) -> None:
    files = pyodide_assets.for_site(python, source)
    states = {build.state(source, source / "out", python) for python in ({}, files)}
    assert len(states) == 2


def test_the_pins_are_inputs_of_the_site(source: Path) -> None:
    names = {path.relative_to(build.ROOT).as_posix() for path in build.inputs(build.ROOT)}
    assert {"scripts/assets.json", "scripts/pyodide_assets.py", "cpcore/ring.py"} <= names


def test_the_real_python_is_complete_and_small() -> None:
    files = build.page_python(build.ROOT)
    if not files:
        pytest.skip("no source of wheels answers here")
    lock = json.loads(files["pyodide-lock.json"])
    assert list(lock["packages"]) == ["numpy"]
    for entry in lock["packages"].values():
        assert hashlib.sha256(files[entry["file_name"]]).hexdigest() == entry["sha256"]
    assert sum(map(len, files.values())) < 18_000_000
    licences = (build.ROOT / "book/licences.md").read_text(encoding="utf-8")
    row = re.search(r"\[numpy\].*?\| ([\d.]+) \|", licences)
    assert row
    assert lock["packages"]["numpy"]["version"] == row[1]
    assert f"CPython {lock['info']['python']}" in licences
