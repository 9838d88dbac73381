"""What a run of processes could leave behind: processes, files, listening ports."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def children(pid: int | str = "self") -> set[int]:
    """Processes whose parent is this one, ended ones that nobody waited for included.

    Not the resource tracker of multiprocessing, which Python starts with the first spawned process
    and which lives as long as this one.
    """
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    found = {int(child) for task in tasks for child in task.read_text().split()}
    return {child for child in found if "resource_tracker" not in command_line(child)}


def command_line(pid: int) -> str:
    """The command of a process; empty for one that has ended."""
    path = Path(f"/proc/{pid}/cmdline")
    return path.read_bytes().replace(b"\0", b" ").decode() if path.exists() else ""


def listening(pid: int | str = "self") -> set[int]:
    """TCP ports on which the process listens."""
    inodes = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = fd.readlink().name
        except OSError:  # closed while we looked
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    return {port for port, inode in _listeners() if inode in inodes}


def ports_in_use() -> set[int]:
    """TCP ports on which any process of the machine listens."""
    return {port for port, _ in _listeners()}


def _listeners() -> Iterator[tuple[int, str]]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if Path(table).exists():
            for line in Path(table).read_text().splitlines()[1:]:
                cells = line.split()
                if cells[3] == "0A":  # LISTEN
                    yield int(cells[1].rsplit(":", 1)[1], 16), cells[9]


@contextmanager
def nothing_left(folder: Path) -> Iterator[None]:
    """Fail if the block leaves a child process, a listening port, or anything in `folder`."""
    before = children(), listening()
    yield
    assert list(folder.iterdir()) == []
    assert (children(), listening()) == before
