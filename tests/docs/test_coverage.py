"""`coverage.json` says where each area is told, asked for, built and tested; all of it is there."""

from __future__ import annotations

import fnmatch
import json
from typing import Any

import pytest

from kandev.gateway.catalogue import ACTIONS
from kandev.mcp.tools import TOOLS
from tests.docs.pages import PUBLIC, ROOT

AREAS: dict[str, dict[str, Any]] = json.loads((PUBLIC / "coverage.json").read_text(encoding="utf-8"))
MEMBERS = ("pages", "tools", "actions", "sources", "tests")


@pytest.mark.parametrize("area", AREAS)
def test_an_area_names_pages_sources_and_tests_that_exist(area: str) -> None:
    told = AREAS[area]
    assert tuple(told) == MEMBERS
    assert told["pages"]
    assert told["sources"]
    assert told["tests"]
    named = [*told["pages"], *told["sources"], *told["tests"]]
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("area", AREAS)
def test_an_area_names_actions_that_the_catalogue_has(area: str) -> None:
    empty = [name for name in AREAS[area]["actions"] if not fnmatch.filter(ACTIONS, name)]
    assert empty == []


def test_every_action_of_the_catalogue_belongs_to_an_area() -> None:
    patterns = [name for told in AREAS.values() for name in told["actions"]]
    assert [a for a in ACTIONS if not any(fnmatch.fnmatch(a, p) for p in patterns)] == []


def test_every_tool_of_agents_belongs_to_an_area() -> None:
    told = {name for area in AREAS.values() for name in area["tools"]}
    assert told == set(TOOLS)


def test_every_page_for_users_belongs_to_an_area() -> None:
    told = {page for area in AREAS.values() for page in area["pages"]}
    pages = {str(path.relative_to(ROOT)) for path in PUBLIC.glob("*.md")}
    assert pages - told == set()
