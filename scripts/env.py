"""Make the virtual environment and install one requirement set into it, once.

Run by the system's own Python before anything is installed, so it uses the standard library only.
A stamp in `.venv` holds a hash of the requirement files: a finished step is not repeated, an
interrupted one leaves no stamp and is. The folder itself has the stamp `made`: without it, it may
be what an interrupted `python -m venv` left.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts" if os.name == "nt" else "bin") / "python"
# Name of the set: requirement files that it reads, in the order that pip sees them.
SETS = {
    "book": ["requirements-book.txt", "constraints.txt"],
    "all": ["requirements.txt", "requirements-book.txt", "constraints.txt", "pyproject.toml"],
}
VERSIONS = ((3, 11), (3, 12))
# What pip writes, in any of its versions, when it reaches no index.
NO_NETWORK = (
    "NewConnectionError|Name or service|Temporary failure|unreachable|ConnectTimeout|ReadTimeout"
    "|ProxyError|SSLError|Max retries|[Cc]onnection broken|ConnectionError"
)
# What it writes when it found no fitting package, which without a network is the same.
NOT_FOUND = "No matching distribution|Could not find a version|[Cc]onflict"
SHOWN = ("Collecting ", "Downloading ", "Installing collected")


class SetupError(Exception):
    """A missing prerequisite, said in one line."""


def fingerprint(name, version):
    """Hash of everything that decides what the requirement set installs."""
    digest = hashlib.sha256(repr(version).encode())
    for file in SETS[name]:
        digest.update(file.encode() + (ROOT / file).read_bytes())
    return digest.hexdigest()


def check_python(version):
    """Refuse a Python that the pinned packages were not tried with."""
    if tuple(version[:2]) not in VERSIONS:
        found = "{}.{}".format(*version[:2])
        raise SetupError(
            "Python 3.11 or 3.12 is needed, found "
            + found
            + ": install one and name it, as in `make book PYTHON=python3.11`."
        )


def run(command):
    """Run a command to its end; both its streams come back as `stdout`."""
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


def usable():
    """True for a finished `.venv` of this Python; a half-made one can look like it."""
    settings = VENV / "pyvenv.cfg"
    series = "version = {}.{}.".format(*sys.version_info[:2])
    if not (PYTHON.exists() and settings.exists() and series in settings.read_text()):
        return False
    if not (VENV / "made").exists():
        # Made before there was this stamp, or by hand: good if pip, its last part, works.
        try:
            if run([str(PYTHON), "-m", "pip", "--version"]).returncode:
                return False
        except OSError:
            return False
        (VENV / "made").touch()
    return True


def make_venv():
    """Create `.venv`, or say which system package is missing."""
    if usable():
        return  # one made by another Python is made anew
    print("Making the virtual environment .venv ...", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    try:
        done = run([sys.executable, "-m", "venv", str(VENV)])
    except KeyboardInterrupt:
        shutil.rmtree(VENV, ignore_errors=True)
        raise
    if done.returncode:
        shutil.rmtree(VENV, ignore_errors=True)  # a half-made folder would look finished
        if "ensurepip" in done.stdout or "No module named venv" in done.stdout:
            raise SetupError(
                "Python's venv module is incomplete: install it (Debian and Ubuntu: "
                "`apt-get install python3-venv`) and try again."
            )
        raise SetupError("venv failed: " + last_line(done.stdout))
    (VENV / "made").touch()


def last_line(text):
    """The line of an output that says most: pip's first ERROR line, or the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["no output"])[-1 if not errors else 0]


def install(name):
    """Run pip for one requirement set, one short line of progress per package."""
    file = SETS[name][0]
    print("Installing " + file + " (minutes the first time) ...", flush=True)
    command = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check"]
    command += ["--progress-bar", "off", "-r", str(ROOT / file)]
    kept = []
    with subprocess.Popen(
        command, cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        for line in pip.stdout:
            kept.append(line)
            if line.strip().startswith(SHOWN):
                print("  " + line.strip()[:96], flush=True)
    if pip.returncode:
        text = "".join(kept)
        if no_network(text):
            raise SetupError("No network: pip reached no package index, and packages are missing.")
        raise SetupError("pip could not install " + file + ": " + last_line(text))


def no_network(text):
    """True if pip failed because it reached no index.

    With no retries allowed it keeps quiet about that and only misses every package. So ask again,
    for one package that every index has, and let it tell everything.
    """
    if re.search(NO_NETWORK, text):
        return True
    if not re.search(NOT_FOUND, text):
        return False
    command = [str(PYTHON), "-m", "pip", "install", "-vv", "--disable-pip-version-check"]
    command += ["--dry-run", "--ignore-installed", "--no-deps", "--retries", "0", "pip"]
    asked = run(command)
    return bool(asked.returncode and re.search(NO_NETWORK, asked.stdout))


def ensure(name):
    """Install the requirement set unless its stamp says that it is installed."""
    check_python(sys.version_info)
    stamp = VENV / ("installed-" + name)
    wanted = fingerprint(name, sys.version_info[:2])
    # The full set contains the book's, so its stamp serves for both.
    full = VENV / "installed-all"
    ready = usable()
    for known, of in ((stamp, name), (full, "all")):
        if ready and known.exists() and known.read_text() == fingerprint(of, sys.version_info[:2]):
            return
    stamp.unlink() if stamp.exists() else None
    start = time.time()
    make_venv()
    install(name)
    stamp.write_text(wanted)
    print("Environment ready after {:.0f} s.".format(time.time() - start), flush=True)


def main():
    """Install the requirement set named on the command line; one line on failure."""
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    try:
        if name not in SETS:
            raise SetupError("scripts.env: expected one of " + ", ".join(SETS) + ".")
        ensure(name)
    except SetupError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("Interrupted: the environment is unfinished, the next run continues.")


if __name__ == "__main__":
    main()
