"""Which files belong to the repository: what the checks look at.

Not here: any rule.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE_FOLDERS = ("src", "tests", "tools", "bench")
# Folders that no checkout owns; only looked at when git cannot say what is tracked.
IGNORED = {"__pycache__", "node_modules", "dist", "build"}
HIDDEN_BUT_OURS = {".ci"}


def tracked_files(root: Path = ROOT) -> list[Path]:
    """Every file that is tracked or would be: git's answer, else the tree without what is generated."""
    asked = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True,
        check=False,
    )
    if asked.returncode == 0 and (root / ".git").exists():
        names = [name.decode() for name in asked.stdout.split(b"\0") if name]
        return sorted(path for name in names if (path := root / name).is_file())
    return sorted(_walk(root))


def python_files(root: Path = ROOT) -> list[Path]:
    """The Python modules of the source, the tests, the tools and the benchmarks."""
    wanted = tuple(root / folder for folder in CODE_FOLDERS)
    return [
        path
        for path in tracked_files(root)
        if path.suffix == ".py" and any(path.is_relative_to(folder) for folder in wanted)
    ]


def _walk(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            hidden = entry.name.startswith(".") and entry.name not in HIDDEN_BUT_OURS
            if not hidden and entry.name not in IGNORED:
                yield from _walk(entry)
        elif entry.is_file():
            yield entry
