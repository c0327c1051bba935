"""The page of the reports from the field: each with what Kandev does, and the tests that name it.

The tests are found by their marks in the source, so that no test has to run for it. Not here: the reports
(`tests.field_reports`), writing the page (`generated`).
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.docs.pages import ROOT
from tests.field_reports import Report, reports_of

TESTS = ROOT / "tests"


def marks_in(text: str) -> Iterator[tuple[str, str]]:
    """Each report that a test of this module names, and the test's name, in the module's order."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                yield from ((id, node.name) for id in _named_by(decorator))


def _named_by(decorator: ast.expr) -> list[str]:
    if not isinstance(decorator, ast.Call) or ast.unparse(decorator.func) != "pytest.mark.field":
        return []
    return [str(ast.literal_eval(argument)) for argument in decorator.args]


@cache
def found_by_report() -> dict[str, list[tuple[Path, str]]]:
    """The tests that name each report, by path."""
    found: dict[str, list[tuple[Path, str]]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for id, test in marks_in(path.read_text(encoding="utf-8")):
            found[id].append((path, test))
    return found


def section(title: str) -> str:
    """One section of the page."""
    return "\n\n".join(_report(report) for report in reports_of(title))


def _report(report: Report) -> str:
    head = f"**{report.id}** {report.symptom} *Kandev:* {report.behaviour}"
    if report.step is not None:
        return "\n".join([head, "", f"- Later, with {report.step}: {report.why}"])
    tests = [_test(path, name) for path, name in found_by_report()[report.id]]
    return "\n".join([head, "", *tests])


def _test(path: Path, name: str) -> str:
    """A test's name is a sentence."""
    words = name.removeprefix("test_").replace("_", " ")
    place = path.relative_to(ROOT)
    return f"- {words} ([{path.parent.relative_to(TESTS)}/{path.stem.removeprefix('test_')}](../{place}))"
