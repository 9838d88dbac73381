"""Python for the page: Pyodide's core from npm, its wheels from whoever has the true ones.

The core holds the official lock file, which names every wheel with its sha256. Three sources are
asked for wheels, one after the other; a wheel with another sum is refused by name, whoever sent
it. What is verified stays in `.cache/`, so an interrupted run continues where it stopped.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts import assets, bytecode, wheel_sources
from scripts.wheel_sources import NoAnswerError, Source

NAME = "pyodide"  # in assets.json, and the folder in the site
MEGABYTE = 1_000_000

Wheels = dict[str, str]  # file name -> sha256
Files = dict[str, bytes]  # name in the site's folder -> content


def sha256(path: Path) -> str:
    """The sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def needed(lock: dict[str, Any], wanted: list[str]) -> dict[str, Any]:
    """Entries of the lock for the packages wanted and all they depend on."""
    found: dict[str, Any] = {}
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = lock["packages"][name]
            waiting += found[name]["depends"]
    return dict(sorted(found.items()))


def collect(wheels: Wheels, kept: Path, sources: dict[str, Source]) -> None:
    """Have every wheel in the folder `kept`, verified, or say which source failed how."""
    kept.mkdir(parents=True, exist_ok=True)
    tried = []
    for name in wheels:
        if (kept / name).exists() and sha256(kept / name) != wheels[name]:
            print(f"{name}: its sha256 is not that of the official lock, refused.", flush=True)
            (kept / name).unlink()
    for source, fetch in sources.items():
        missing = [name for name in wheels if not (kept / name).exists()]
        if not missing:
            return
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix="incoming-") as folder:
            try:
                refused = accept(fetch(missing, Path(folder)), wheels, kept)
                problem = f"refused {', '.join(refused)}: another sha256" if refused else ""
            except NoAnswerError as error:
                problem = str(error)
        tried.append(f"  {source}: {problem or 'does not have it'}")
    missing = [name for name in wheels if not (kept / name).exists()]
    if missing:
        lines = [f"Python for the page: no source has {', '.join(missing)}. Asked were:", *tried]
        raise assets.AssetError("\n".join(lines))


def accept(arrived: Iterator[Path], wheels: Wheels, kept: Path) -> list[str]:
    """Keep each file that arrives with the right sum at once; names of the others."""
    refused = []
    for path in arrived:
        if sha256(path) == wheels[path.name]:
            path.replace(kept / path.name)
        else:
            refused.append(path.name)
            print(f"{path.name}: its sha256 is not that of the official lock, refused.", flush=True)
    return refused


def ensure(
    cache: Path = assets.CACHE,
    npm: assets.Fetch = assets.npm_pack,
    sources: dict[str, Source] = wheel_sources.ALL,
) -> Files:
    """Every file of Python for the page, verified: core, lock of what is hosted, wheels.

    The library of the core comes compiled.
    """
    asset = assets.pinned()[NAME]
    with assets.using(cache):
        files = assets.wanted_files(assets.archive(NAME, asset, cache, npm), asset)
        lock = json.loads(files["pyodide-lock.json"])
        lock["packages"] = needed(lock, asset["packages"])
        wheels = {entry["file_name"]: entry["sha256"] for entry in lock["packages"].values()}
        kept = cache / "pyodide-wheels"
        collect(wheels, kept, sources)
        files["pyodide-lock.json"] = json.dumps(lock, sort_keys=True).encode()
        files |= {name: (kept / name).read_bytes() for name in wheels}
        return bytecode.with_compiled_library(files, cache)


def source_zip(package: Path) -> bytes:
    """A zip of every module and quiz below a package's folder; the same files, the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted([*package.rglob("*.py"), *package.rglob("*.toml")]):
            info = zipfile.ZipInfo(path.relative_to(package.parent).as_posix())
            info.compress_type = zipfile.ZIP_DEFLATED  # and the date stays 1980
            archive.writestr(info, path.read_bytes())
    return buffer.getvalue()


def for_site(python: Files, source: Path) -> Files:
    """The files of the site's folder: Python, `cpcore.zip` and a manifest of sizes."""
    files = python | {"cpcore.zip": source_zip(source / "cpcore")}
    lock = json.loads(python["pyodide-lock.json"])
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    manifest = {
        "version": digest.hexdigest()[:12],
        "pyodide": lock["info"]["version"],
        "python": lock["info"]["python"],
        "packages": {entry["name"]: entry["version"] for entry in lock["packages"].values()},
        "files": {name: len(content) for name, content in sorted(files.items())},
        "sums": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    return files | {"manifest.json": json.dumps(manifest, indent=1).encode()}


def version(files: Files) -> str:
    """What distinguishes these files from those of another build; empty if there are none."""
    return str(json.loads(files["manifest.json"])["version"]) if files else ""


def write(files: Files, site: Path) -> None:
    """Write the files into their folder of the site."""
    for name, content in files.items():
        (site / NAME).mkdir(exist_ok=True)
        (site / NAME / name).write_bytes(content)


def main() -> None:
    """Fetch what is missing and say what is there."""
    try:
        files = ensure()
    except assets.AssetError as error:
        sys.exit(str(error))
    size = sum(map(len, files.values())) / MEGABYTE
    print(f"Python for the page: {len(files)} files, {size:.1f} MB, verified.")


if __name__ == "__main__":
    main()
