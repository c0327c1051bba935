"""Every link of every page leads to something that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, markdown_files

LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
PAGES = [str(path.relative_to(ROOT)) for path in markdown_files()]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as renderers make them: lower case, dashes, no punctuation."""
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", outside, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere; what is on other machines is not looked at."""
    found: list[str] = []
    for target in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        text = there.read_text(encoding="utf-8") if there.is_file() else ""
        if not there.exists() or (anchor and anchor not in anchors(text)):
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_broken_link(page: str) -> None:
    assert broken(ROOT / page) == []


def test_a_missing_file_and_a_missing_heading_are_found(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# One, two\n[x](b.md) [y](#one-two) [z](#three) `[c](d.md)`\n")
    assert broken(page) == ["b.md", "#three"]
