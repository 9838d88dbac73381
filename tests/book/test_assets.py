"""Hosted files are the pinned ones, byte for byte, or the build says in one line why not."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from scripts import assets

CSS = b"@font-face{src:url(fonts/a.woff2) format('woff2'),url(fonts/a.ttf) format('truetype')}"
FILES = {"dist/a.min.css": CSS, "dist/fonts/a.woff2": b"font", "dist/fonts/a.ttf": b"old"}


def packed(files: dict[str, bytes]) -> bytes:
    """An npm archive of these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


class Registry:
    """Stands in for npm: writes its content and counts the calls."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.calls = 0

    def __call__(self, package: str, folder: Path) -> None:
        self.calls += 1
        assert package == "kit@1.0.0"
        (folder / "kit-1.0.0.tgz").write_bytes(self.content)


CONTENT = packed(FILES)
KIT: assets.Asset = {
    "version": "1.0.0",
    "sha512": hashlib.sha512(CONTENT).hexdigest(),
    "folder": "site/vendor/kit",
    "files": ["dist/a.min.css", "dist/fonts/*.woff2"],
}


def test_a_second_run_fetches_nothing(tmp_path: Path) -> None:
    npm = Registry(CONTENT)
    for _ in range(2):
        assets.archive("kit", KIT, tmp_path, npm)
    assert npm.calls == 1


def test_a_damaged_file_in_the_cache_is_refused_and_fetched_again(tmp_path: Path) -> None:
    npm = Registry(CONTENT)
    path = assets.archive("kit", KIT, tmp_path, npm)
    path.write_bytes(CONTENT[:-1] + b"x")
    assert assets.archive("kit", KIT, tmp_path, npm).read_bytes() == CONTENT
    assert npm.calls == 2


def test_another_archive_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(assets.AssetError, match=r"kit 1\.0\.0: its sha512 is not the pinned one"):
        assets.archive("kit", KIT, tmp_path, Registry(packed({"dist/a.min.css": b"evil"})))
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_of_the_site_is_laid_out_again(tmp_path: Path) -> None:
    path = assets.archive("kit", KIT, tmp_path, Registry(CONTENT))
    folder = assets.unpack(path, KIT, tmp_path)
    (folder / "fonts/a.woff2").write_bytes(b"broken")
    (folder / "stale.txt").write_bytes(b"left over")
    assets.unpack(path, KIT, tmp_path)
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert found == {"a.min.css", "fonts/a.woff2"}
    assert (folder / "fonts/a.woff2").read_bytes() == b"font"


def test_only_woff2_fonts_are_named(tmp_path: Path) -> None:
    path = assets.archive("kit", KIT, tmp_path, Registry(CONTENT))
    css = (assets.unpack(path, KIT, tmp_path) / "a.min.css").read_text()
    assert css == "@font-face{src:url(fonts/a.woff2) format('woff2')}"


def test_katex_has_the_version_that_renders_the_formulas() -> None:
    from sphinxcontrib import katex

    assert assets.pinned()["katex"]["version"] == katex.katex_version


def test_a_package_that_npm_cannot_have_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_offline", "true")  # and nothing in its cache
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    with pytest.raises(assets.AssetError) as error:
        assets.npm_pack("katex@0.16.22", tmp_path)
    said = "katex@0.16.22: npm could not download it (ENOTCACHED); is there a network?"
    assert str(error.value) == said
