"""`python -m cpcore museum`: a visit in the terminal.

Owns the dialog: what is typed and what is answered. The visit itself is `visit.Museum`.
"""

import argparse

from cpcore.museum.checklist import BY_ID, CHECKLIST
from cpcore.museum.visit import Museum

HELP = "a letter, the name of a check, `checks`, `next` or `quit`"


def main(argv: list[str]) -> int:
    """Exhibit after exhibit, until the last or until `quit`; then the score."""
    parser = argparse.ArgumentParser(prog="python -m cpcore museum", description=HELP)
    parser.add_argument("--seed", type=int, default=0, help="which exhibits, and in which order")
    parser.add_argument("--size", type=int, default=12, help="how many")
    args = parser.parse_args(argv)
    try:
        museum = Museum(args.seed, args.size)
    except ValueError as error:
        print(error)
        return 2
    for number in range(1, len(museum.ids) + 1):
        print(f"\n{museum.show(number)}")
        if not _answered(museum, number):
            break
        print(museum.reveal(number))
    print(f"\n{museum.score()}")
    return 0


def _answered(museum: Museum, number: int) -> bool:
    """Whether the visitor goes on: after the right letter, or by `next`."""
    options = museum.options(number)
    while True:
        try:
            typed = input("> ").strip().lower()
        except EOFError:
            return False
        if typed in ("quit", "next"):
            return typed == "next"
        if typed == "checks":
            print("\n".join(f"  {check.id:10}{check.title}" for check in CHECKLIST))
        elif typed in BY_ID:
            print(museum.run(number, typed))
        elif typed in options:
            print(museum.guess(number, typed))
            if options[typed] == museum.ids[number - 1]:
                return True
        else:
            print(f"expected {HELP}")
