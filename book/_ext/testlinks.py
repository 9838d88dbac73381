"""A role for Markdown pages: {test}`core/test_x.py::test_claim` links to that test's source.

The text of the link is the claim, which is the name of the test. The address comes from the
repository that `_config.yml` names. A test that does not exist stops the build.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

ROOT = Path(__file__).resolve().parent.parent.parent


def line_of(target: str, tests: Path = ROOT / "tests") -> int:
    """The line on which a test function starts; ValueError if there is none of that name."""
    name, _, function = target.partition("::")
    path = tests / name
    if path.is_file():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == function:
                return node.lineno
    raise ValueError(f"test: expected FILE::FUNCTION below tests/, received {target!r}")


class TestLink(SphinxRole):
    """The link, or an error that names what was asked for."""

    __test__ = False

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A reference node: the file's name as code, then the claim in words."""
        try:
            line = line_of(self.text)
        except ValueError as error:
            message = self.inliner.reporter.error(str(error), line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        name, _, function = self.text.partition("::")
        options = self.config.html_theme_options
        source = f"{options['repository_url']}/blob/{options['repository_branch']}"
        link = nodes.reference("", "", refuri=f"{source}/tests/{name}#L{line}", internal=False)
        link += nodes.literal("", name.rpartition("/")[2])
        link += nodes.Text(": " + function.removeprefix("test_").replace("_", " "))
        return [link], []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the role."""
    app.add_role("test", TestLink())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
