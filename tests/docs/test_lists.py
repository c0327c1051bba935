"""Lists that are written by hand lack nothing: notifications, codes, paths, frames, lines of scripts."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import get_args

import pytest
from msgspec import structs

from kandev.agentctl.mock_agent.script import COMMANDS
from kandev.core.session import Outcome
from kandev.gateway.catalogue import ACTIONS
from kandev.gateway.errors import STATUS
from kandev.mcp.tools import TOOLS
from kandev.usecases.explain_session import explain_session
from kandev.wire import agentctl as wire
from kandev.wire.gateway_board import ProfileCreate
from tests.docs.pages import PUBLIC, ROOT, public, words_in_code

SOURCE = ROOT / "src" / "kandev"
EMITTERS = (
    *(f"runtime/{name}.py" for name in ("announcements", "booking", "lines", "pictures", "scribe")),
    "gateway/outbox.py",
)
NAME = re.compile(r'"((?:session|workspace|task|workflow|repository|message|agent)\.[a-z_.]+)"')
TOOL = re.compile(r"\b[a-z_]+_kandev\b")


def _emitted() -> set[str]:
    """The names of notifications in the modules that announce things."""
    modules = [*(SOURCE / name for name in EMITTERS), *sorted((SOURCE / "usecases").glob("*.py"))]
    found = {name for module in modules for name in NAME.findall(module.read_text(encoding="utf-8"))}
    return found - set(ACTIONS)


def _section(text: str, title: str) -> str:
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_notifications_of_the_page_are_those_that_are_announced() -> None:
    rows = _section(public("websocket-api.md"), "Notifications").splitlines()
    firsts = " ".join(row.split("|")[1] for row in rows if row.startswith("| `"))
    assert words_in_code(firsts) == _emitted()


def test_the_codes_of_the_page_are_those_of_the_doors() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", public("http-api.md"), re.MULTILINE)
    assert {code: int(status) for code, status in rows} == dict(STATUS)


def test_every_path_of_the_backend_stands_on_the_page() -> None:
    page = public("http-api.md")
    text = (SOURCE / "gateway" / "http.py").read_text(encoding="utf-8")
    paths = [path.replace(":path", "") for path in re.findall(r'Route\(\s*"([^"]+)"', text)]
    assert len(paths) > 5
    assert [path for path in paths if f" {path}`" not in page] == []


def test_every_path_of_agentctl_stands_on_the_page() -> None:
    page = public("agentctl.md")
    text = (SOURCE / "agentctl" / "server.py").read_text(encoding="utf-8")
    ends = [end.replace("{{", "{").replace("}}", "}") for end in re.findall(r'f"\{base\}(/[^"]+)"', text)]
    assert len(ends) > 4
    wanted = ["GET /health", "POST /api/v1/instances`", "DELETE /api/v1/instances/{id}`"]
    wanted += [f"/instances/{{id}}/api/v1{end}" for end in ends]
    assert [path for path in wanted if path not in page] == []


def test_every_frame_of_agentctl_stands_on_the_page() -> None:
    tags = {str(frame.__struct_config__.tag) for frame in get_args(wire.AnyFrame)}
    assert tags - words_in_code(_section(public("agentctl.md"), "The stream")) == set()


def test_every_line_of_the_mock_agent_stands_on_the_page() -> None:
    told = {word.split()[0] for word in words_in_code(_section(public("agents.md"), "The mock agent"))}
    assert set(COMMANDS) - told == set()


def test_every_member_of_a_profile_stands_on_the_page() -> None:
    told = words_in_code(_section(public("agents.md"), "Add a profile"))
    assert {field.name for field in structs.fields(ProfileCreate)} - told == set()


def test_everything_that_an_instance_takes_stands_on_the_page() -> None:
    page = public("agentctl.md")
    names = [field.name for field in structs.fields(wire.CreateInstance)]
    assert [name for name in names if not re.search(rf"\b{name}\b", page)] == []


def test_every_member_of_an_explanation_stands_on_the_page() -> None:
    source = inspect.getsource(explain_session)
    names = set(re.findall(r'"([a-z_]+)":', source)) - {"count", "max", "auto_run", "id", "status", "what"}
    page = public("websocket-api.md")
    assert len(names) > 10
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", page)] == []


def test_every_state_of_a_session_stands_on_the_page() -> None:
    states = {"CREATED", "STARTING", "RUNNING", "WAITING_FOR_INPUT"}
    states |= {outcome.upper() for outcome in Outcome if outcome is not Outcome.OPEN}
    rows = re.findall(r"^\| `([A-Z_]+)` \|", public("sessions-and-review.md"), re.MULTILINE)
    assert set(rows) == states


@pytest.mark.field("D37")
def test_the_pages_name_only_tools_that_there_are() -> None:
    named = {word for page in PUBLIC.glob("*.md") for word in TOOL.findall(page.read_text(encoding="utf-8"))}
    assert named == set(TOOLS)


def test_the_page_recommends_an_interrupt_for_replacement_instructions_to_a_busy_direct_child() -> None:
    page = " ".join(public("coordination.md").split())
    assert "**replacement instructions for a busy direct child**" in page
    assert (
        "We recommend `interrupt` whenever a direct child is busy with work that your message replaces"
        in page
    )


def test_every_decision_stands_in_the_list_of_decisions() -> None:
    folder: Path = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    records = [path.name for path in folder.glob("2*.md")]
    assert records
    assert [name for name in records if f"({name})" not in listed] == []
