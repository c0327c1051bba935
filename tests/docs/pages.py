"""The documentation's files and the parts of them that are made from the program.

A generated part stands between `<!-- made: NAME -->` and `<!-- end: NAME -->`. Not here: what is made
(`generated`).
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = ROOT / "docs" / "public"


def markdown_files() -> list[Path]:
    """Every page of the repository that a reader may open."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def public(name: str) -> str:
    """The text of a page of the user's documentation."""
    return (PUBLIC / name).read_text(encoding="utf-8")


def made_part(text: str, name: str) -> str:
    """What stands between the marks of a generated part. Raises ValueError when they are not there."""
    match = _marks(name).search(text)
    if match is None:
        raise ValueError(f"The page has no part {name!r} between its marks.")
    return match[2]


def with_part(text: str, name: str, made: str) -> str:
    """The page with a generated part in place of the old one."""
    made_part(text, name)
    return _marks(name).sub(lambda match: f"{match[1]}\n{made.strip()}\n{match[3]}", text)


def words_in_code(text: str) -> set[str]:
    """Everything that a page sets in backticks, on one line."""
    return set(re.findall(r"`([^`\n]+)`", text))


def _marks(name: str) -> re.Pattern[str]:
    mark = re.escape(name)
    return re.compile(rf"(<!-- made: {mark} -->)(.*?)(<!-- end: {mark} -->)", re.DOTALL)
