"""What importing costs: agentctl stays light, the version needs almost nothing, core needs only Python."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
HEAVY = {
    "alembic",
    "click",
    "httpx",
    "mcp",
    "prometheus_client",
    "pydantic",
    "rich",
    "sqlalchemy",
    "structlog",
}

REPORT = "print('\\n'.join(sys.modules), file=sys.stderr)"
VERSION = """
sys.argv = ["kandev", "--version"]
from kandev.__main__ import main
try:
    main()
except SystemExit:
    pass
"""


def _module_names(package: str) -> list[str]:
    folder = SOURCE.joinpath(*package.split("."))
    names = [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in sorted(folder.rglob("*.py"))
    ]
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


def _loaded_after(code: str) -> set[str]:
    program = f"import sys\nsys.path.insert(0, {str(SOURCE)!r})\n{code}\n{REPORT}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def _tops(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.mark.proves("CTL-light")
def test_agentctl_imports_nothing_heavy() -> None:
    loaded = _loaded_after("import " + ", ".join(_module_names("kandev.agentctl")))
    # uvicorn itself imports click; that none of our modules does is a contract of the import rules.
    assert _tops(loaded) & (HEAVY - {"click"}) == set()


def test_agentctl_imports_nothing_of_ours_but_wire() -> None:
    loaded = _loaded_after("import " + ", ".join(_module_names("kandev.agentctl")))
    ours = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("kandev")}
    assert ours <= {"kandev", "kandev.agentctl", "kandev.wire"}


def test_the_version_is_answered_without_loading_the_product() -> None:
    loaded = _loaded_after(VERSION)
    allowed = {"kandev", "kandev.__main__", "kandev.cli"}
    ours = {name for name in loaded if name.startswith("kandev")}
    assert {name for name in ours if ".".join(name.split(".")[:2]) not in allowed} == set()
    assert (
        _tops(loaded) & {*HEAVY - {"click"}, "asyncio", "starlette", "uvicorn", "websockets", "msgspec"}
        == set()
    )


def _imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add("kandev" if node.level else node.module or "")
    return _tops(found)


@pytest.mark.parametrize(
    "path", sorted((SOURCE / "kandev" / "core").rglob("*.py")), ids=lambda path: path.stem
)
def test_core_imports_the_standard_library_only(path: Path) -> None:
    assert _imported(path) <= {*sys.stdlib_module_names, "kandev"}


def test_the_licence_and_the_type_marker_are_there() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()[:200]
    assert (SOURCE / "kandev" / "py.typed").is_file()
