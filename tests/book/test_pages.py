"""The reference pages say what is true of the code, the sources and the chapters."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
import json
import re
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import nbformat
import numpy as np
import pytest
from docutils.parsers.rst import DirectiveError
from pybtex.database import parse_file

import cpcore
from cpcore import pitfalls, planner
from cpcore.ui import catalogue, merge_facts, svg
from scripts import exercises, pages

BOOK = pages.BOOK
ENTRIES = parse_file(str(BOOK / "references.bib")).entries
PUBLIC = sorted(
    name
    for name in set(cpcore.__all__) - {"__version__"}
    if not inspect.ismodule(getattr(cpcore, name))
)
CITATION = re.compile(r"references\.md#ref-([\w-]+)")


def text(name: str) -> str:
    return (BOOK / name).read_text(encoding="utf-8")


def sources() -> dict[str, str]:
    """Markdown of every page but the list of references itself."""
    found = {p.name: p.read_text(encoding="utf-8") for p in BOOK.glob("*.md")}
    for path in BOOK.glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        found[path.name] = "\n\n".join(c.source for c in cells if c.cell_type == "markdown")
    del found["references.md"]
    return found


def section(page: str, title: str) -> str:
    """The part of a page below one heading."""
    return re.split(r"^#+ ", page.split(f" {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def rows(markdown: str) -> list[list[str]]:
    """Cells of the table rows of a text, heads and rules left out."""
    lines = [line.strip(" |") for line in markdown.split("\n") if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in lines]
    rules = {i for i, row in enumerate(cells) if set("".join(row)) <= set("-: ")}
    return [row for i, row in enumerate(cells) if not {i, i + 1} & rules]


def names_in(markdown: str) -> set[str]:
    """Every name in code quotes."""
    return {n for span in re.findall(r"`([^`]+)`", markdown) for n in re.findall(r"\w+", span)}


# References


def test_the_list_of_references_is_written_from_the_bibliography() -> None:
    assert text("references.md") == pages.references(), "run `python -m scripts.pages`"


def test_every_entry_names_its_place_and_what_the_book_takes_from_it() -> None:
    for key, entry in ENTRIES.items():
        fields = entry.fields
        assert entry.persons["author"], key
        assert {"title", "year", "annote", "keywords"} <= set(fields), key
        assert fields["keywords"] in pages.SECTIONS, key
        assert sum(place in fields for place in ("eprint", "doi", "url")) == 1, key
        if "url" in fields:
            assert fields["url"].startswith("https://"), key
            assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", fields["urldate"]), key
        if "eprint" in fields:  # 2310.01889 is from October 2023
            assert fields["eprint"][:2] == fields["year"][-2:], key


def test_every_citation_has_an_entry() -> None:
    cited = {(page, key) for page, md in sources().items() for key in CITATION.findall(md)}
    assert len(cited) > 10
    missing = {(page, key) for page, key in cited if key not in ENTRIES}
    assert not missing


def test_every_entry_is_cited_or_further_reading() -> None:
    cited = {key for md in sources().values() for key in CITATION.findall(md)}
    unread = {k for k, e in ENTRIES.items() if e.fields["keywords"] != "further"} - cited
    assert not unread


def test_every_paper_that_a_docstring_names_is_listed() -> None:
    listed = {entry.fields.get("eprint") for entry in ENTRIES.values()}
    package = Path(cpcore.__file__).parent
    for path in sorted([*package.glob("*.py"), *package.glob("planner/*.py")]):
        for number in re.findall(r"arXiv:(\d{4}\.\d{5})", path.read_text(encoding="utf-8")):
            assert number in listed, (path.name, number)


def test_authors_and_titles_come_out_as_text() -> None:
    page = text("references.md")
    assert "Christopher Ré" in page
    assert "Łukasz Kaiser" in page
    assert not re.search(r"[{}]", page.replace("\\\n", ""))


# Names


def test_each_library_entry_names_the_version_of_the_source_it_links_to() -> None:
    listed = section(text("names.md"), "What each library means")
    heads = re.findall(r"^- \*\*(.*?)\*\*\\$", listed, re.MULTILINE | re.DOTALL)
    assert len(heads) > 12
    assert len(heads) == listed.count("*Sharded:*") == listed.count("*Sent:*")
    for head in heads:
        key = CITATION.findall(head)[0]
        version = ENTRIES[key].fields.get("version", "")
        shown = re.findall(r"\b(?:\d+\.\d+\.\d+|[0-9a-f]{7})\b", head)
        assert shown == re.findall(r"\b(?:\d+\.\d+\.\d+|[0-9a-f]{7})\b", version), head


def test_what_the_page_says_of_pytorch_is_what_the_pinned_pytorch_does() -> None:
    pin = re.search(r"^torch==([\d.]+)$", (pages.ROOT / "requirements.txt").read_text(), re.M)
    assert pin
    assert {ENTRIES[key].fields["version"] for key in ("pytorch_cp", "pytorch_sp")} == {pin[1]}
    spec = importlib.util.find_spec("torch")  # read, not imported: that takes seconds
    assert spec
    assert spec.origin
    tensor = Path(spec.origin).parent / "distributed" / "tensor"
    cp = (tensor / "experimental/_context_parallel/_attention.py").read_text(encoding="utf-8")
    assert "rotate_method: _RotateMethod = _RotateMethod.ALL_GATHER" in cp
    assert 'rotate_method == "alltoall"' in cp
    assert "prototype feature" in cp
    style = (tensor / "parallel/style.py").read_text(encoding="utf-8")
    doc = style.split("class SequenceParallel")[1][:900]
    assert all(word in doc for word in ("nn.LayerNorm", "nn.Dropout", "RMSNorm"))


# Notation


def test_every_public_argument_and_field_is_explained() -> None:
    wanted = set(cpcore.ChunkStats._fields)
    called = [getattr(planner, name) for name in planner.__all__]
    called = [thing for thing in called if inspect.isfunction(thing)]  # not presets and records
    called += [planner.ModelShape]
    for public in [*(getattr(cpcore, name) for name in PUBLIC), *called]:
        members = [m for n, m in vars(public).items() if n[0] != "_"] if isinstance(
            public, type) else []  # fmt: skip
        for call in [public, *filter(inspect.isfunction, members)]:
            wanted |= set(inspect.signature(call).parameters)
    assert len(wanted) > 30
    assert not wanted - {"self"} - names_in(text("notation.md"))


def test_letters_with_two_meanings_elsewhere_are_not_used() -> None:
    symbols = section(text("notation.md"), "Symbols")
    used = {word for row in rows(symbols) for word in re.findall(r"\w+", row[0])}
    assert {"S", "R", "Hq", "Hkv", "Dv"} <= used
    assert not used & {"N", "T", "W", "G", "l", "z"}


def test_the_three_layouts_are_those_of_the_package() -> None:
    found = 0
    for call, *owned in rows(section(text("notation.md"), "Shard, chunk, block")):
        match = re.fullmatch(r"`(\w+)\((\d+), (\d+)\)`", call)
        if match:
            layout = getattr(cpcore, match[1])(int(match[2]), int(match[3]))
            assert [", ".join(map(str, part)) for part in layout.owned] == owned
            found += 1
    assert found == 3


def test_running_state_formulas_hold() -> None:
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(1, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    scores = (q @ k.T / 2)[0]  # scale = 4**-0.5
    stats = cpcore.attention_chunk_stats(q, k, v)
    weights = np.exp(scores - scores.max())
    np.testing.assert_allclose(stats.max, scores.max())
    np.testing.assert_allclose(stats.sum, weights.sum())
    np.testing.assert_allclose(stats.output[0], weights @ v)
    out, lse = cpcore.finalize(stats)
    np.testing.assert_allclose(lse, stats.max + np.log(stats.sum))
    np.testing.assert_allclose(out[0], np.exp(scores - lse) @ v)


# Index


def answer(number: int) -> str:
    """The folded answer of one question of the self-check."""
    block = re.findall(r"<details>.*?</details>", text("index.md"), re.DOTALL)[number - 1]
    assert f"<summary>{number}. " in block
    return str(block.split("</summary>")[1])


def test_answers_of_the_self_check_are_right() -> None:
    softmax = np.exp([0, np.log(3)]) / np.exp([0, np.log(3)]).sum()
    np.testing.assert_allclose(softmax, [1 / 4, 3 / 4])
    assert "1/4 and 3/4" in answer(1)
    q, k, v = np.ones((1, 1)), np.array([[0.3], [1.1]]), np.array([[1.0], [2.0]])
    before = cpcore.dense_attention(q, k, v, scale=1)
    after = cpcore.dense_attention(q, k + 5, v, scale=1)
    np.testing.assert_allclose(after[0], before[0])
    np.testing.assert_allclose(after[1] - before[1], 5)
    assert "output stays" in answer(2)
    assert "grows by 5" in answer(2)
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(np.float64(1000)))
    assert "Infinity" in answer(3)
    q, k, v = np.ones((4, 8)), np.ones((6, 8)), np.ones((6, 3))
    shapes = (q @ k.T).shape, cpcore.dense_attention(q, k, v)[0].shape
    assert "Scores {}, output {}".format(*shapes) in answer(4)
    seen = [j for j in range(10) if j <= 3]
    assert answer(5).strip().startswith(f"{len(seen)}: positions 0, 1, 2 and 3")
    assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)
    assert answer(6).strip().startswith("No.")
    remote = 6 - cpcore.contiguous(6, 3).lengths[0]
    assert answer(7).strip().startswith(f"{remote}. ")


def test_every_answer_says_where_to_refresh() -> None:
    for number in range(1, 8):
        assert re.search(r"Refresh:\s+\[", answer(number)), number


def test_the_table_of_chapters_is_written_from_the_chapters() -> None:
    assert text("index.md") == pages.with_chapters(text("index.md")), (
        "run `python -m scripts.pages`"
    )
    table = rows(section(text("index.md"), "The chapters").split("The minutes")[0])
    linked = [re.findall(r"\((\w+\.ipynb)\)", row[0])[0] for row in table]
    toc = (pages.ROOT / "_toc.yml").read_text()
    assert linked == [f"{name}.ipynb" for name in re.findall(r"file: book/(\d\d_\w+)", toc)]


def test_the_rule_for_minutes_is_the_one_that_is_stated() -> None:
    rule = (
        f"{pages.WORDS_PER_MINUTE} words a minute, half a minute for each code cell, "
        f"{pages.MINUTES_PER_EXPLORABLE} minutes for each picture with controls, "
        f"{pages.MINUTES_PER_EXERCISE} for each exercise, {pages.MINUTES_PER_QUIZ} for the quiz, "
        "rounded to five"
    )
    assert pages.MINUTES_PER_CELL == 0.5
    assert rule in " ".join(text("index.md").split())


def test_minutes_count_words_cells_explorables_and_exercises() -> None:
    cells = [
        nbformat.v4.new_markdown_cell("# 9. Title\n" + "word " * 1797),
        nbformat.v4.new_code_cell("x = 1"),
        nbformat.v4.new_code_cell("from cpcore.ui import split_explorer\n\nsplit_explorer"),
        nbformat.v4.new_markdown_cell("**Exercise 1. Try**"),
        nbformat.v4.new_code_cell('from cpcore.ui import quiz\n\nquiz("09")'),
    ]
    found = pages.counts(nbformat.v4.new_notebook(cells=cells))
    assert found == {"words": 1803, "cells": 2, "explorables": 1, "exercises": 1, "quizzes": 1}
    assert pages.minutes(found) == (15, 25)  # 10.02 + 1 + 3 = 14.02, and 27.02


def test_every_explorable_of_the_catalogue_is_counted() -> None:
    for entry in catalogue.values():
        name = next(n for n, shown in vars(cpcore.ui).items() if shown is entry)
        cells = [nbformat.v4.new_code_cell(f"from cpcore.ui import {name}\n\n{name}")]
        assert pages.counts(nbformat.v4.new_notebook(cells=cells))["explorables"] == 1


def test_every_exercise_of_a_chapter_is_counted() -> None:
    for path in set(BOOK.glob("*.ipynb")) - {exercises.PATH}:
        notebook = nbformat.read(path, as_version=4)
        assert 2 <= pages.counts(notebook)["exercises"] <= 4, path.name


def test_the_index_describes_the_explorable_it_shows() -> None:
    index = text("index.md")
    name = re.findall(r":::\{explorable\} ([\w-]+)", index)
    assert name == ["merge-stepper"]
    assert (merge_facts.CHUNKS, merge_facts.PER_CHUNK) == (4, 2)
    assert "Four ranks own two keys each" in index
    last = {"step": merge_facts.LAST, "order": "given", "precision": "float64"}
    for preset in merge_facts.PRESETS:  # the answer at the end equals that of dense attention
        assert merge_facts.facts(preset=preset, **last).right or preset == "all-masked"
    assert not np.isfinite(
        merge_facts.facts(preset="overflow", **{**last, "precision": "float32"}).plain[0]
    )


# Package page, licences, links


def test_the_package_page_shows_every_public_name_once() -> None:
    page = text("api.md")
    shown = re.findall(r"^\.\. auto(?:function|class):: (\w+)", page, re.MULTILINE)
    glance = re.findall(r"^   (\w+)$", page, re.MULTILINE)
    own = [n for n, f in vars(pitfalls).items() if inspect.isfunction(f) and n[0] != "_"
           and f.__module__ == pitfalls.__name__]  # fmt: skip
    assert Counter(shown) == Counter([*PUBLIC, *own])
    assert Counter(glance) == Counter(shown)


def test_the_planner_page_shows_every_name_of_the_planner_once() -> None:
    page = text("planner.md")
    listed = re.findall(r"^   (\w+)$", page, re.MULTILINE)
    shown = re.findall(r"^\.\. (?:auto(?:function|class)|py:data):: (\w+)$", page, re.MULTILINE)
    data = [name for name in shown if name.isupper()]  # the summary would show what a dict is
    assert sorted(shown) == sorted(planner.__all__)
    assert sorted([*listed, *data]) == sorted(shown)


def test_the_presets_on_the_planner_page_are_those_of_the_package() -> None:
    shown = [row for row in rows(section(text("planner.md"), "Presets")) if len(row) > 1]
    numbers = {row[0]: [n.split()[0].replace(",", "") for n in row[1:-1]] for row in shown}
    for model in planner.MODELS.values():
        size = [model.layers, model.hidden, model.q_heads, model.head_dim, model.mlp_hidden]
        size += [model.vocabulary]
        found = numbers.pop(model.name)
        heads = next(row[3] for row in shown if row[0] == model.name)
        assert heads == f"{model.q_heads} / {model.kv_heads}"
        assert found[:-1] == [str(n) for n in size]
        assert float(found[-1]) == round(model.parameters / 1e9, 2)
    for machine in planner.HARDWARE.values():
        speeds = [machine.peak_flops_per_s / 1e12, machine.memory_bytes / 1e9]
        speeds += [machine.memory_bytes_per_s / 1e9, machine.node_size]
        speeds += [machine.node_bytes_per_s / 1e9, machine.network_bytes_per_s / 1e9]
        assert [float(n) for n in numbers.pop(machine.name)] == pytest.approx(speeds, rel=0.005)
    assert not numbers


def test_every_public_member_is_on_the_package_page() -> None:
    for public in (cpcore.Visibility, cpcore.Layout):
        line = re.search(rf"autoclass:: {public.__name__}\n   :members: (.*)", text("api.md"))
        assert line
        shown = inspect.getmembers(public, lambda m: inspect.isfunction(m) or type(m) is property)
        members = {name for name, _ in shown if name[0] != "_"}
        assert set(line[1].split(", ")) == members


def test_licences_name_the_versions_that_the_site_is_built_from() -> None:
    hosted = json.loads((pages.ROOT / "scripts" / "assets.json").read_text())
    versions = {name: asset["version"] for name, asset in hosted.items()}
    for package in ("sphinxcontrib-katex", "PyData Sphinx Theme", "Sphinx Book Theme", "Sphinx",
                    "sphinx-design", "sphinx-copybutton", "sphinx-togglebutton", "sphinx-thebe",
                    "MyST-NB", "Pygments"):  # fmt: skip
        distribution = package.lower().replace(" ", "-")
        versions[package] = importlib.metadata.version(distribution)
    table = {
        re.sub(r".*?\[([^]]+)\].*", r"\1", row[0]): row[1] for row in rows(text("licences.md"))
    }
    table["katex"], table["pyodide"] = table.pop("KaTeX"), table.pop("Pyodide")
    for name, version in versions.items():
        if name == "axe-core":
            assert f"(https://github.com/dequelabs/axe-core) {version} " in text("licences.md")
        else:
            assert table[name] == version, name


def anchors(page: str) -> set[str]:
    """Anchors of a Markdown page: its headings and its explicit targets."""
    heads = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", page, re.MULTILINE))


def test_every_link_between_pages_leads_somewhere() -> None:
    everything = {**sources(), "references.md": text("references.md")}
    links = [(page, *link) for page, md in everything.items()
             for link in re.findall(r"\]\(([\w./]*)(?:#([\w-]+))?\)", md)]  # fmt: skip
    assert len(links) > 40
    for page, target, anchor in links:
        target = target or page
        assert (BOOK / target).is_file(), (page, target)
        if anchor and target.endswith(".md"):
            assert anchor in anchors(everything[target]), (page, target, anchor)


# Directives


@pytest.fixture(scope="module")
def directives() -> ModuleType:
    path = BOOK / "_ext" / "explorable.py"
    spec = importlib.util.spec_from_file_location("explorable_directives", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def directive(directives: ModuleType, name: str) -> Any:
    machine = SimpleNamespace(reporter=None)
    return directives.Explorable("explorable", [name], {}, [], 1, 0, "", None, machine)


def test_the_directive_inserts_what_a_notebook_stores(directives: ModuleType) -> None:
    (node,) = directive(directives, "merge-stepper").run()
    assert node.astext() == catalogue["merge-stepper"].html()
    assert node["format"] == "html"


def test_an_unknown_explorable_fails_with_the_known_names(directives: ModuleType) -> None:
    with pytest.raises(DirectiveError) as caught:
        directive(directives, "merge-steper").run()
    assert "expected one of" in caught.value.msg
    assert "'merge-stepper'" in caught.value.msg
    assert "received 'merge-steper'" in caught.value.msg


def test_the_legend_shows_every_rank_and_every_kind_of_block(directives: ModuleType) -> None:
    drawn = directives.legend()
    assert all(drawn.count(color) >= 1 for color in svg.RANK_COLORS)
    for kind, meaning in directives.TILES:
        assert svg.tile(0, 0, 24, kind)  # raises for a kind that does not exist
        assert f"{kind}: {meaning}" in drawn
    assert len(re.findall(r'<svg role="img" aria-label="[^"]{40,}"', drawn)) == drawn.count("<svg")
