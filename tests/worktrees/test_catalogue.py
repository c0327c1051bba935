"""Known agents are looked for on PATH, and asked for nothing but their version."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from kandev.execution.catalogue import PathCatalogue, version_in
from kandev.execution.clock import SystemClock, TimeIds
from kandev.execution.known_agents import AGENTS


def a_program(folder: Path, name: str, script: str) -> str:
    """An executable shell script in `folder`."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.proves("CLI-agents")
async def test_the_mock_agent_comes_first_and_what_is_on_the_path_is_found(tmp_path: Path) -> None:
    path = a_program(tmp_path, "opencode", "echo opencode 1.18.33")
    agents = await PathCatalogue({"PATH": f"{tmp_path}:/usr/bin:/bin"}).look(versions=True)

    assert agents[0].name == "mock"
    assert agents[0].found
    assert agents[0].command == (sys.executable, "-m", "kandev", "mock-agent")
    found = {agent.name: agent for agent in agents if agent.found}
    assert found["opencode"].command == (path, "acp")
    assert (found["opencode"].path, found["opencode"].version) == (path, "1.18.33")


@pytest.mark.proves("CLI-agents")
async def test_an_agent_that_is_not_here_says_how_to_get_it(tmp_path: Path) -> None:
    agents = await PathCatalogue({"PATH": str(tmp_path)}).look(versions=True)

    assert [agent.name for agent in agents if agent.found] == ["mock"]
    gemini = next(agent for agent in agents if agent.name == "gemini")
    assert gemini.command == ("gemini", "--acp")
    assert gemini.install == "npm install -g @google/gemini-cli"
    assert ("GEMINI_CLI_NO_RELAUNCH", "true") in gemini.env


async def test_the_order_is_the_same_at_every_look(tmp_path: Path) -> None:
    catalogue = PathCatalogue({"PATH": str(tmp_path)})

    names = [agent.name for agent in await catalogue.look(versions=False)]

    assert names == ["mock", *(recipe.name for recipe in AGENTS)]
    assert len(set(names)) == len(names)


async def test_an_older_name_of_a_program_is_found_too(tmp_path: Path) -> None:
    path = a_program(tmp_path, "claude-code-acp", "exit 0")
    agents = await PathCatalogue({"PATH": str(tmp_path)}).look(versions=False)

    claude = next(agent for agent in agents if agent.name == "claude")
    assert (claude.found, claude.command, claude.version) == (True, (path,), None)


async def test_agents_that_hang_fail_or_flood_are_found_without_a_version_in_time(tmp_path: Path) -> None:
    a_program(tmp_path, "opencode", "sleep 600")
    a_program(tmp_path, "gemini", "sleep 600 & sleep 600")
    a_program(tmp_path, "qwen", "echo 1.2.3; exit 3")
    a_program(tmp_path, "cline", "while :; do echo 1.2.3; done")
    a_program(tmp_path, "kilo", "echo kilo v7.8.1-beta.2")
    begin = time.monotonic()

    agents = await PathCatalogue({"PATH": f"{tmp_path}:/usr/bin:/bin"}, deadline=1.0).look(versions=True)

    told = {agent.name: agent.version for agent in agents if agent.found and agent.name != "mock"}
    assert told == dict.fromkeys(("opencode", "gemini", "qwen", "cline")) | {"kilo": "7.8.1-beta.2"}
    assert time.monotonic() - begin < 4.0  # side by side: one deadline, not four


@pytest.mark.parametrize(
    ("said", "version"),
    [
        (b"1.2.3\n", "1.2.3"),
        (b"tool version v2.0.1 (linux)", "2.0.1"),
        (b"nightly\nx", "nightly"),
        (b"\xff\n", "\N{REPLACEMENT CHARACTER}"),
        (b"", None),
    ],
)
def test_a_version_is_found_in_what_a_program_says(said: bytes, version: str | None) -> None:
    assert version_in(said) == version


def test_ids_are_unique_sortable_by_time_and_safe_everywhere() -> None:
    ids = TimeIds()
    made = [ids.new("task") for _ in range(2000)]

    assert sorted(made) == made
    assert len(set(made)) == len(made)
    assert all(id.replace("_", "").isalnum() and id == id.lower() and len(id) == 31 for id in made)


def test_times_are_rfc_3339_in_utc_with_milliseconds() -> None:
    now = SystemClock().now()

    assert len(now) == len("2026-01-31T09:15:00.123Z")
    assert now.endswith("Z")
    assert now[10] == "T"
