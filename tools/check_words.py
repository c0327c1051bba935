"""Word check: no unfinished marks in the source, no module with an empty name, no registry named anywhere.

Prints one line `path:line: sentence` for each offence and exits 1 when there is one. The forbidden words are
put together from pieces, so that this file does not hold them itself.
Not here: style, which ruff judges.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tools.tree import python_files, tracked_files  # noqa: E402 - a program that runs by its path finds its siblings first

# The first of these words is a task state too: a mark only where it opens a comment or takes a colon in one.
STATE_WORD = "TO" + "DO"
UNFINISHED = re.compile(
    rf"#\s*({STATE_WORD})\b|#.*\b({STATE_WORD})[:(]"
    rf"|\b({'FIX' + 'ME'}|{'X' * 3}|{'NotImplemented' + 'Error'})\b"
)
# A thing without a noun is not understood yet.
EMPTY_NAMES = frozenset(
    {"utils", "util", "common", "helpers", "helper", "services", "managers", "models", "misc"}
)
# A lock file or a script that names a registry ties its reader to it; pip and npm know their own.
REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("deb", "debian", "org"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("registry", "docker"),
    )
)
LARGEST_TEXT = 4 << 20  # bytes; what is bigger is not text that anybody wrote


def unfinished(path: Path, text: str) -> Iterator[str]:
    """Sentences about unfinished marks in one source file."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := UNFINISHED.search(line):
            mark = next(filter(None, match.groups()))
            yield f"{path}:{number}: {mark} marks unfinished work; finish it or take it out."


def empty_names(path: Path) -> Iterator[str]:
    """Sentences about names in a module's path that say nothing."""
    for part in (*path.parts[:-1], path.stem):
        if part.lower() in EMPTY_NAMES:
            yield f"{path}:1: the name {part} says nothing about what is inside; name it by its noun."


def registry_hosts(path: Path, text: str) -> Iterator[str]:
    """Sentences about names of package registries in one file."""
    for number, line in enumerate(text.splitlines(), 1):
        for host in REGISTRY_HOSTS:
            if host in line.lower():
                yield f"{path}:{number}: names the package registry {host}; that is the user's own setting."


def _text(path: Path) -> str:
    if path.stat().st_size > LARGEST_TEXT:
        return ""
    data = path.read_bytes()
    return "" if b"\0" in data else data.decode("utf-8", errors="replace")


def _offences() -> Iterator[str]:
    for path in python_files():
        yield from empty_names(path.relative_to(ROOT))
    for path in tracked_files():
        text = _text(path)
        relative = path.relative_to(ROOT)
        yield from registry_hosts(relative, text)
        if relative.parts[0] == "src":
            yield from unfinished(relative, text)


def main() -> int:
    """Check the repository; the exit code is 1 when a forbidden word is found."""
    found = list(_offences())
    for sentence in found:
        print(sentence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
