"""`python -m cpcore COMMAND …`: hands the rest of the line to the command's module.

Owns the list of commands and nothing else: a command's module is imported only when it is asked
for, so that this file needs none of their dependencies.
"""

import importlib
import os
import sys

# name -> (module with `main(argv: list[str]) -> int`, what it does)
COMMANDS: dict[str, tuple[str, str]] = {
    "exercise": ("cpcore.exercises.command", "judges your answer to an exercise"),
    "museum": ("cpcore.museum.command", "wrong rings to diagnose, as in chapter 11"),
    "drill": ("cpcore.interview.command", "asks for estimates and judges number and unit"),
    "lab": ("cpcore.distributed.lab", "the two-owner laboratory on real processes"),
    "verify": ("cpcore.distributed.verify", "random attention problems on real processes"),
    "train": ("cpcore.distributed.train", "a language model trained by one process and by several"),
}


def usage() -> str:
    """The list of commands, one line each."""
    lines = [f"  {name:10} {what}" for name, (_, what) in COMMANDS.items()]
    return "\n".join(["usage: python -m cpcore COMMAND …", *lines])


def main(argv: list[str]) -> int:
    """Run one command and return its exit code; 2 if there is no such command."""
    if argv in (["-h"], ["--help"]):
        print(usage())
        return 0
    if not argv or argv[0] not in COMMANDS:
        print(f"command: expected one of {', '.join(COMMANDS)}, received {argv[:1]}\n{usage()}")
        return 2
    module = importlib.import_module(COMMANDS[argv[0]][0])
    return int(module.main(argv[1:]))


def piped(argv: list[str]) -> int:
    """`main`, which ends quietly if nobody reads its output to the end."""
    try:
        code = main(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


if __name__ == "__main__":
    sys.exit(piped(sys.argv[1:]))
