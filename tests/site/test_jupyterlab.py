"""The notebooks in a real JupyterLab: every cell runs, and the controls are live."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page

from cpcore.exercises import starter
from cpcore.exercises.sources import model_source
from cpcore.ui import catalogue, quiz
from cpcore.ui.quiz import plain
from scripts.build import ROOT
from tests.support.browser import visiting

SOLVED = "merge_chunk_stats"
START_LIMIT_S = 60
RUN_LIMIT_MS = 90_000
SETTINGS = {
    "notebook-extension/tracker": '{"windowingMode": "none"}',  # cells out of sight are drawn too
    "apputils-extension/notification": '{"fetchNews": "false", "checkForUpdates": false}',
}


def address_of(lab: subprocess.Popen[str]) -> str:
    """The address that JupyterLab says it serves, with a slash at the end."""
    said: list[str] = []
    assert lab.stderr is not None  # piped below
    late = threading.Timer(START_LIMIT_S, lab.kill)
    late.start()
    try:
        for line in lab.stderr:
            said.append(line)
            found = re.search(r"(http://127\.0\.0\.1:\d+/)lab\?token=", line)
            if found:
                return found[1]
    finally:
        late.cancel()
    raise AssertionError(f"no JupyterLab within {START_LIMIT_S} s:\n{''.join(said[-20:])}")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Address and token of a JupyterLab on a copy of the notebooks, with settings of its own."""
    home = tmp_path_factory.mktemp("lab")
    for path in (ROOT / "book").glob("*.ipynb"):
        shutil.copy(path, home)
    nbformat.write(solving(), home / "solve.ipynb")
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyter", "lab", "--allow-root", "--no-browser"]
    command += ["--ip=127.0.0.1", "--port=0", f"--IdentityProvider.token={token}"]
    command += [f"--ServerApp.root_dir={home}"]
    settings = home / ".lab"
    for name, text in SETTINGS.items():
        path = settings / f"@jupyterlab/{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    environment = dict(
        os.environ,
        PYTHONPATH=str(ROOT),
        CPCORE_PROGRESS=str(home / "progress.json"),
        JUPYTER_CONFIG_DIR=str(home / ".config"),
        JUPYTER_RUNTIME_DIR=str(home / ".runtime"),
        JUPYTERLAB_SETTINGS_DIR=str(settings),
        JUPYTERLAB_WORKSPACES_DIR=str(home / ".workspaces"),
    )
    environment.pop("CPCORE_STATIC", None)  # it asks for stored pictures instead of live controls
    with subprocess.Popen(
        command, env=environment, cwd=home, text=True, stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, start_new_session=True,
    ) as server:  # fmt: skip
        try:
            address = address_of(server)
            assert server.stderr is not None
            drain = threading.Thread(target=server.stderr.read, daemon=True)  # or its pipe fills
            drain.start()
            yield address, token
        finally:
            os.killpg(server.pid, signal.SIGKILL)


def solving() -> Any:
    """A notebook in which a reader takes a hint, fails with the starter, and solves an exercise."""
    cells = [
        "from cpcore import exercises",
        starter(SOLVED),
        f'exercises.submit("{SOLVED}", {SOLVED})',
        f'exercises.hint("{SOLVED}")',
        model_source(SOLVED),
        f'exercises.run("{SOLVED}", {SOLVED})',
        f'exercises.submit("{SOLVED}", {SOLVED})',
        "exercises.overview()",
    ]
    return nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )


def run_all(page: Page, address: str, token: str, name: str) -> None:
    """Open a notebook, wait for its kernel, and run every cell."""
    page.goto(f"{address}lab/tree/{name}?token={token}&reset")
    page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=RUN_LIMIT_MS)
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=RUN_LIMIT_MS)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def wait_until_done(page: Page) -> None:
    """The last cell has printed what it prints, and no cell waits with a star."""
    page.wait_for_function(
        """() => {
          const prompts = [...document.querySelectorAll('.jp-Notebook .jp-InputPrompt')]
            .map(e => e.textContent).filter(text => text);
          return prompts.length > 5 && prompts.every(text => /\\[\\d+\\]/.test(text));
        }""",
        timeout=RUN_LIMIT_MS,
    )


def picture(page: Page, name: str) -> Locator:
    """The HTML view of an explorable: the box of its title holds both."""
    title = catalogue[name].title
    box = page.locator(".widget-vbox").filter(has_text=f"{title}.").first
    box.scroll_into_view_if_needed()
    return box


def chapters_with(name: str) -> list[str]:
    """Notebooks that show this explorable."""
    mark = f'data-explorable=\\"{name}\\"'
    return [path.name for path in sorted((ROOT / "book").glob("*.ipynb"))
            if mark in path.read_text(encoding="utf-8").replace('\\\\"', '\\"')]  # fmt: skip


def answers_a_question(page: Page, chapter: str) -> None:
    """The first question of the quiz says why a checked answer is right, and counts it."""
    box, question = page.locator(".cp-live-quiz"), quiz(chapter).questions[0]
    choice = question.choices[question.right]
    box.scroll_into_view_if_needed()
    box.get_by_role("radio", name=plain(choice.text), exact=True).check()
    box.get_by_role("button", name="Check", exact=True).first.click()
    box.get_by_text(plain(choice.why)).wait_for()
    assert box.get_by_text("1 of ").inner_text().endswith("right, 1 at the first try.")


@pytest.mark.parametrize("name", ["merge-stepper", "laboratory"])
def test_a_notebook_runs_and_a_moved_control_redraws_its_picture(
    browser: Browser, lab: tuple[str, str], name: str
) -> None:
    address, token = lab
    notebook = chapters_with(name)[0]
    with visiting(browser, address, viewport={"width": 1280, "height": 1000}) as (page, seen):
        run_all(page, address, token, notebook)
        wait_until_done(page)
        assert page.locator(".jp-RenderedText[data-mime-type*=stderr]").count() == 0
        box = picture(page, name)
        shown = box.locator(".cp-live svg").first
        before = shown.get_attribute("aria-label")
        box.get_by_role("button", name="Step", exact=True).click()
        page.wait_for_function(
            "([e, old]) => e.querySelector('svg').getAttribute('aria-label') !== old",
            arg=[box.element_handle(), before],
        )
        step = next(c for c in catalogue[name].controls if c.name in ("step", "event"))
        wanted = catalogue[name].lines(**{step.name: 1})[0]
        assert wanted in box.inner_html()
        slider = box.locator(".noUi-handle").first
        slider.focus()
        page.keyboard.press("ArrowRight")
        wanted = catalogue[name].lines(**{step.name: 2})[0]
        page.wait_for_function(
            "([e, text]) => e.innerHTML.includes(text)", arg=[box.element_handle(), wanted]
        )
        answers_a_question(page, notebook[:2])
        assert not seen.outside


def test_an_exercise_is_solved_from_starter_to_accepted(
    lab: tuple[str, str], browser: Browser
) -> None:
    with visiting(browser, lab[0]) as (page, seen):
        run_all(page, *lab, "solve.ipynb")
        wait_until_done(page)
        cells = page.locator(".jp-Notebook .jp-CodeCell")
        shown = [cell.inner_text() for cell in cells.all()]
        assert "not accepted" in shown[2]
        assert "Hint 1 of 3" in shown[3]
        assert "Hint 2 of 3" not in shown[3]
        assert "2 of 2 examples right" in shown[5]
        assert f"{SOLVED}: accepted" in shown[6]
        assert "solved, 1 of 3 hints" in shown[7]
        assert not seen.outside
