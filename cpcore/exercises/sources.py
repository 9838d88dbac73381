"""Solutions as text, and what is made of them: starters, wrong answers, specifications.

A solution is a plain file of `cpcore/exercises/solutions`. What the reader writes stands between
two marks; everything else of the file is given. So a starter cannot drift from its solution.
"""

import ast
import linecache
from functools import cache
from pathlib import Path
from typing import Any

from cpcore.checks import expected
from cpcore.exercises.exercise import Answer, Exercise, Wrong

FOLDER = Path(__file__).parent / "solutions"
OPEN, CLOSE = "# >>> yours", "# <<<"


@cache
def solution_source(name: str) -> str:
    """The file of a solution without its module docstring."""
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    first = ast.parse(text).body[0]
    return "\n".join(text.split("\n")[first.end_lineno :]).strip("\n") + "\n"


def model_source(name: str) -> str:
    """A solution as a reader may see it, once solved: without the marks."""
    lines = solution_source(name).split("\n")
    return "\n".join(line for line in lines if line.strip() not in (OPEN, CLOSE))


def specification(name: str) -> str:
    """The docstring of the solution's function: what to write, with shapes."""
    for node in ast.parse(solution_source(name)).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node) or ""
    raise expected("name", "an exercise with a function of that name", repr(name))


def starter(name: str) -> str:
    """The solution with every marked region replaced by its line budget."""
    lines: list[str] = []
    region: list[str] | None = None
    for line in solution_source(name).split("\n"):
        if line.strip() == OPEN:
            region = []
        elif line.strip() == CLOSE:
            indent = line[: len(line) - len(line.lstrip())]
            count = len(code_lines(region or []))
            lines.append(f"{indent}# Your code. The model needs {count} lines.")
            lines.append(f'{indent}raise NotImplementedError("{name}")')
            region = None
        elif region is None:
            lines.append(line)
        else:
            region.append(line)
    return "\n".join(lines)


def given_functions(name: str) -> set[str]:
    """Names of the functions that the starter gives beside the one to write."""
    nodes = ast.parse(starter(name)).body
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)} - {name}


def code_lines(lines: list[str]) -> list[str]:
    """Lines that are neither blank nor only a comment."""
    return [line for line in lines if line.strip() and not line.strip().startswith("#")]


def wrong_source(exercise: Exercise, wrong: Wrong) -> str:
    """The text of a wrong answer; each replacement must fit exactly once."""
    text = solution_source(exercise.name)
    for old, new in wrong.edits:
        if text.count(old) != 1:
            raise expected(f"{wrong.name}: edit", "a text that occurs once", repr(old))
        text = text.replace(old, new)
    return text


def function(name: str, source: str, label: str) -> Answer:
    """The function `name` that the source defines; its lines can be shown in messages."""
    filename = f"<{label}>"
    lines = [line + "\n" for line in source.split("\n")]
    linecache.cache[filename] = (len(source), None, lines, filename)
    space: dict[str, Any] = {"__name__": "answer"}
    exec(compile(source, filename, "exec"), space)
    answer: Answer = space[name]
    return answer


@cache
def solution(name: str) -> Answer:
    """The reference solution."""
    return function(name, model_source(name), f"solution {name}")


@cache
def wrong_answer(exercise: Exercise, wrong: Wrong) -> Answer:
    """A wrong answer, ready to be called."""
    return function(exercise.name, wrong_source(exercise, wrong), f"wrong {wrong.name}")
