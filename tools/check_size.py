"""Size check: no module over 400 lines, no class over 250, no function over 50, no more than 6 arguments.

Prints one line `path:line: sentence` for each offence and exits 1 when there is one. Limits hold for every
file from its first commit: limits that judge only new lines do not hold.
Not here: complexity, which ruff counts.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tools.tree import python_files  # noqa: E402 - a program that runs by its path finds its siblings first

MODULE_LINES = 400
CLASS_LINES = 250
FUNCTION_LINES = 50
ARGUMENTS = 6  # self and cls are not counted

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Offence:
    """One place that is too big; `line` counts from 1."""

    path: Path
    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.sentence}"


def offences(path: Path, text: str) -> Iterator[Offence]:
    """What is too big in one module, or the sentence that it is not Python."""
    lines = len(text.splitlines())
    if lines > MODULE_LINES:
        yield Offence(path, 1, f"the module has {lines} lines; {MODULE_LINES} are the limit.")
    try:
        tree = ast.parse(text, str(path))
    except SyntaxError as error:
        yield Offence(path, error.lineno or 1, f"not Python: {error.msg}.")
        return
    for node, is_method in _definitions(tree, inside_class=False):
        if isinstance(node, ast.ClassDef):
            yield from _too_long(path, node, "class", CLASS_LINES)
        else:
            yield from _too_long(path, node, "function", FUNCTION_LINES)
            yield from _too_many_arguments(path, node, is_method=is_method)


def _definitions(tree: ast.AST, *, inside_class: bool) -> Iterator[tuple[ast.ClassDef | Function, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, inside_class
            yield from _definitions(node, inside_class=isinstance(node, ast.ClassDef))
        else:
            yield from _definitions(node, inside_class=inside_class)


def _too_long(path: Path, node: ast.ClassDef | Function, kind: str, limit: int) -> Iterator[Offence]:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if lines > limit:
        yield Offence(path, node.lineno, f"the {kind} {node.name} has {lines} lines; {limit} are the limit.")


def _too_many_arguments(path: Path, node: Function, *, is_method: bool) -> Iterator[Offence]:
    spec = node.args
    count = len(spec.posonlyargs) + len(spec.args) + len(spec.kwonlyargs)
    is_static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    if is_method and not is_static:
        count -= 1
    if count > ARGUMENTS:
        yield Offence(
            path, node.lineno, f"the function {node.name} takes {count} arguments; {ARGUMENTS} are the limit."
        )


def main() -> int:
    """Check the repository; the exit code is 1 when something is too big."""
    found = [
        offence
        for path in python_files()
        for offence in offences(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    ]
    for offence in found:
        print(offence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
