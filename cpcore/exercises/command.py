"""`python -m cpcore exercise`: the exercises in a terminal.

The same judge as in a notebook, for an answer that stands in a file.
"""

import argparse
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cpcore.exercises import (
    Overview,
    begin,
    catalogue,
    hint,
    overview,
    progress,
    run,
    specification,
    starter,
    submit,
)
from cpcore.exercises.calls import guarded
from cpcore.exercises.deadline import HardStop
from cpcore.exercises.exercise import Answer
from cpcore.exercises.hints import Hints

ACCEPTED, REJECTED, MISUSED = 0, 1, 2
HARD_S = 120.0  # far above what all tests of a slow answer need


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    made = argparse.ArgumentParser(prog="python -m cpcore exercise", description=__doc__)
    kept = f"Progress is kept in {progress.path()}"
    made.epilog = f"{kept}; CPCORE_PROGRESS names another file, or off."
    made.add_argument("name", nargs="?", help="of the exercise, which is that of the function")
    made.add_argument("file", nargs="?", type=Path, help="your answer; judged by every test")
    made.add_argument("--run", action="store_true", help="only the examples")
    made.add_argument("--list", action="store_true", help="all exercises, and what you solved")
    made.add_argument("--hint", action="store_true", help="open the next hint")
    made.add_argument("--starter", action="store_true", help="print the starter")
    made.add_argument("--begin", action="store_true", help="print the starter, start the clock")
    made.add_argument("--export", action="store_true", help="print your progress")
    made.add_argument("--import", dest="take", type=Path, help="take over exported progress")
    made.add_argument("--reset", action="store_true", help="forget your progress")
    return made


def main(argv: list[str]) -> int:
    """Run the command; 0 if the answer was accepted or nothing was judged."""
    try:
        args = parser().parse_args(argv)
    except SystemExit as end:
        return int(end.code or 0)
    for asked, act in _actions(args):
        if asked:
            return _told(act)
    return _told(lambda: _no_name())


def _actions(args: argparse.Namespace) -> list[tuple[Any, Callable[[], object]]]:
    """Each action with whether it is asked for; the first counts."""
    name, one = args.name, args.name is not None
    return [
        (args.list, overview),
        (args.export, progress.export_text),
        (args.take, lambda: progress.import_text(args.take.read_text(encoding="utf-8"))),
        (args.reset, _forget),
        (one and args.hint, lambda: hint(name)),
        (one and args.begin, lambda: begin(name)),
        (one and args.starter, lambda: _known(name) and starter(name)),
        (one and args.run and not args.file, lambda: _known(name) and _no_file()),
        (one and args.file and args.run, lambda: run(name, answer_in(args.file, name))),
        (one and args.file, lambda: submit(name, answer_in(args.file, name))),
        (one, lambda: _known(name) and about(name)),
    ]


def _told(act: Callable[[], object]) -> int:
    """Do it, print what it says, and turn it into an exit code."""
    try:
        with HardStop(HARD_S, "the answer could not be stopped, so the process ends"):
            said = act()
    except OSError as error:
        print(f"{error.filename}: {error.strerror or error}")
        return MISUSED
    except ValueError as error:
        print(error)
        return MISUSED
    print(str(said).rstrip()) if str(said).strip() else None
    return ACCEPTED if isinstance(said, str | Overview | Hints) or bool(said) else REJECTED


def _no_name() -> bool:
    raise ValueError(f"name: expected an exercise, received none. They are:\n\n{overview()}")


def _no_file() -> bool:
    raise ValueError("--run: expected a file with your answer, received none")


def _forget() -> str:
    count = len(progress.load())
    return progress.reset() or f"forgot {count} exercise{'' if count == 1 else 's'}"


def _known(name: str) -> bool:
    if name not in catalogue:
        raise ValueError(f"name: expected one of {', '.join(catalogue)}, received {name!r}")
    return True


def about(name: str) -> str:
    """Title, level, minutes and specification of one exercise."""
    each = catalogue[name]
    return f"{each.title} ({each.level}, {each.minutes} min)\n\n{specification(name)}"


def answer_in(file: Path, name: str) -> Answer:
    """The function `name` that a file defines.

    Raises: ValueError if the file does not run to its end in time, or has no such function.
    """
    text = file.read_text(encoding="utf-8")
    space: dict[str, Any] = {"__name__": "answer", "__file__": str(file)}
    linecache.checkcache(str(file))
    outcome = guarded(lambda: exec(compile(text, str(file), "exec"), space), space=space)
    if outcome.error:
        raise ValueError(f"{file}: expected a file that runs, but {outcome.error}")
    if not callable(space.get(name)):
        raise ValueError(f"{file}: expected a function {name}, received none")
    answer: Answer = space[name]
    return answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
