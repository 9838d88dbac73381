"""Execute the notebooks and store them in one normal form.

Normal form: executed top to bottom in a fresh kernel, no timing, widget or kernel-version
metadata, ids from content. So a stored notebook changes only when its source or its results do.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import yaml

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
CELL_LIMIT_S = 60
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
METADATA: dict[str, Any] = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
FIRST_CELL_TEMPLATE = """\
import importlib.util
import subprocess
import sys

if "google.colab" in sys.modules and importlib.util.find_spec("cpcore") is None:
    source = "cpcore[ui] @ git+{repository}"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", source], check=True)

import cpcore

assert cpcore.__version__ == "{version}", f"this page needs cpcore {version}: {{cpcore.__file__}}"
print("cpcore", cpcore.__version__)"""


def first_cell() -> str:
    """The first code cell of every notebook, for this version and repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    return FIRST_CELL_TEMPLATE.format(
        repository=config["repository"]["url"], version=project["version"]
    )


FIRST_CELL = first_cell()


def paths() -> list[Path]:
    """The notebooks of the book, in file order."""
    return sorted(BOOK.glob("*.ipynb"))


def execute(notebook: Any, folder: Path) -> None:
    """Run every cell in a fresh kernel, as a reader would from the notebook's folder."""
    from nbclient import NotebookClient

    os.environ["CPCORE_STATIC"] = "1"  # stored outputs hold no widget view
    os.environ["CPCORE_PROGRESS"] = "off"  # nor what anybody has solved
    NotebookClient(
        notebook,
        timeout=CELL_LIMIT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        extra_arguments=["--log-level=40"],  # no word on the transport of a local kernel
        store_widget_state=False,
    ).execute()


def normalize(notebook: Any) -> None:
    """Bring a notebook into the normal form, in place."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: dict[str, int] = {}
    for number, cell in enumerate(notebook.cells):
        cell.source = "\n".join(line.rstrip() for line in cell.source.strip("\n").split("\n"))
        tags = sorted(set(cell.metadata.get("tags", [])))
        if cell.cell_type == "code" and number == first_code(notebook):
            cell.source, tags = FIRST_CELL, ["hide-input"]
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        if "hide-cell" in tags:
            cell.metadata["jupyter"] = {"source_hidden": True}
        cell.id = content_id(cell, seen)
        if cell.cell_type == "code":
            cell.outputs = [normal_output(output) for output in merged_streams(cell.outputs)]


def first_code(notebook: Any) -> int:
    """Index of the first code cell."""
    kinds = [cell.cell_type for cell in notebook.cells]
    return kinds.index("code") if "code" in kinds else -1


def content_id(cell: Any, seen: dict[str, int]) -> str:
    """An id from the cell's kind and source; a repeated cell gets a count."""
    text = f"{cell.cell_type}\n{cell.source}"
    base = f"{cell.cell_type}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"
    seen[base] = seen.get(base, 0) + 1
    return base if seen[base] == 1 else f"{base}-{seen[base]}"


def merged_streams(outputs: list[Any]) -> list[Any]:
    """Outputs with consecutive pieces of one stream joined: their split depends on timing."""
    merged: list[Any] = []
    for output in outputs:
        streams = [o for o in merged[-1:] if o.output_type == "stream" == output.output_type]
        if streams and streams[0].name == output.name:
            streams[0].text += output.text
        else:
            merged.append(output)
    return merged


def normal_output(output: Any) -> Any:
    """One output without metadata and without a widget view."""
    if "data" in output:
        output.data.pop(WIDGET_VIEW, None)
        output.metadata = nbformat.from_dict({})
    return output


def stored(notebook: Any) -> str:
    """The text of a notebook file."""
    text: str = nbformat.writes(notebook, version=nbformat.NO_CONVERT)
    return text.rstrip("\n") + "\n"


def problems(path: Path) -> list[str]:
    """What keeps a stored notebook from being in normal form; it is not executed here."""
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    found = []
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    if counts != list(range(1, len(counts) + 1)):
        found.append(f"{path.name}: not executed top to bottom in a fresh kernel")
    normalize(notebook)
    if stored(notebook) != text:
        found.append(f"{path.name}: not in normal form, run `make notebooks`")
    return found


def refresh(path: Path) -> bool:
    """Execute and store one notebook; True if the file changed."""
    before = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(before, as_version=4)
    normalize(notebook)  # the first cell must be right before it runs
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    execute(notebook, path.parent)
    normalize(notebook)
    after = stored(notebook)
    path.write_text(after, encoding="utf-8")
    return after != before


def main() -> None:
    """Refresh the notebooks named (default: all), or check that they are in normal form."""
    parser = argparse.ArgumentParser(prog="python -m scripts.notebooks", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check, execute nothing")
    parser.add_argument("files", nargs="*", type=Path, help="notebooks (default: all of the book)")
    args = parser.parse_args()
    files = [file.resolve() for file in args.files] or paths()
    if args.check:
        found = [problem for file in files for problem in problems(file)]
        sys.exit("\n".join(found) if found else 0)
    for number, file in enumerate(files, start=1):
        print(f"[{number}/{len(files)}] {file.name} ...", end=" ", flush=True)
        print("changed" if refresh(file) else "same", flush=True)


if __name__ == "__main__":
    main()
