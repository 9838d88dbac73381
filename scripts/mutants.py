"""Mutation tests of the modules that everything rests on: change a line, see a test fail.

Prints the share of changes that some test noticed and the ones that none did; LOG.md gives the
reason for each of those.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("chunks", "masks", "layouts", "ring", "replay", "ledger", "loss")
LEAST_KILLED = 0.90
KILLED = {"killed", "timeout", "segfault", "caught by type check"}
RESULT = re.compile(r"^\s*(cpcore\.(\w+)\.\S+): (.+)$", re.MULTILINE)


def mutmut(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run mutmut in the project's root and keep what it says."""
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def verdicts(text: str) -> dict[str, str]:
    """Verdict by mutant, from the output of `mutmut results --all true`."""
    return {name: verdict.strip() for name, _, verdict in RESULT.findall(text)}


def report(found: dict[str, str]) -> float:
    """Print the score of each module and every survivor; return the share killed."""
    total: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    for name, verdict in found.items():
        module = name.split(".")[1]
        total[module] += 1
        killed[module] += verdict in KILLED
    for module in MODULES:
        print(f"{module}: {killed[module]} of {total[module]} killed")
    for name, verdict in sorted(found.items()):
        if verdict not in KILLED:
            print(f"{verdict}: {name}")
    return killed.total() / max(1, total.total())


def main() -> None:
    """Run all mutants; fail below the least share killed."""
    shutil.rmtree(ROOT / "mutants", ignore_errors=True)
    print("Running the mutants (some minutes) ...", flush=True)
    run = mutmut("run")
    found = verdicts(mutmut("results", "--all", "true").stdout)
    if not found:
        sys.exit(f"mutmut made no mutants:\n{(run.stdout + run.stderr)[-2000:]}")
    share = report(found)
    print(f"{share:.1%} killed, at least {LEAST_KILLED:.0%} expected")
    sys.exit(0 if share >= LEAST_KILLED else 1)


if __name__ == "__main__":
    main()
