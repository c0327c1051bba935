"""Kandev's own MCP server stands beside the profile's, in the way that the agent can take."""

import sys

import pytest

from kandev.agentctl.adapters.base import ToolServer
from kandev.agentctl.tunnel.bridge import is_bridge
from tests.agentctl.adapter.peer import MakeStage, Message

pytestmark = pytest.mark.proves("CTL-mcp", "MCP-task-mode")

OURS = ToolServer("http://127.0.0.1:1/instances/e1/mcp", "the-token")
OVER_HTTP = {
    "type": "http",
    "name": "kandev",
    "url": OURS.url,
    "headers": [{"name": "Authorization", "value": "Bearer the-token"}],
}
BRIDGE = [sys.executable, "-P", "-m", "kandev", "agentctl", "mcp-bridge"]


async def opened(
    stages: MakeStage, capabilities: Message, servers: list[Message], resume: str | None = None
) -> tuple[list[Message], tuple[str, ...]]:
    """The servers that the agent was given, and the warnings."""
    stage = stages()
    starting = stage.begin(mcp_servers=servers, tools=OURS, resume_token=resume)
    stage.agent.answer(await stage.agent.expect("initialize"), {"agentCapabilities": capabilities})
    new = await stage.agent.next()
    assert new["method"] == ("session/new" if resume is None else "session/resume")
    stage.agent.answer(new, {"sessionId": "s1"})
    return new["params"]["mcpServers"], (await starting).warnings


async def test_an_agent_that_takes_http_gets_the_address_and_the_token(stages: MakeStage) -> None:
    servers, warnings = await opened(stages, {"mcpCapabilities": {"http": True}}, [])
    assert (servers, warnings) == ([OVER_HTTP], ())


async def test_a_conversation_that_is_taken_up_gets_it_too(stages: MakeStage) -> None:
    capabilities = {"mcpCapabilities": {"http": True}, "sessionCapabilities": {"resume": {}}}
    servers, _ = await opened(stages, capabilities, [], resume="s1")
    assert servers == [OVER_HTTP]


@pytest.mark.parametrize(
    "capabilities", [{}, {"mcpCapabilities": {"http": False}}, {"mcpCapabilities": None}]
)
async def test_any_other_agent_gets_the_bridge_with_both_in_its_environment(
    stages: MakeStage, capabilities: Message
) -> None:
    (bridge,), warnings = await opened(stages, capabilities, [])
    assert [bridge["command"], *bridge["args"]] == BRIDGE
    assert is_bridge(" ".join(BRIDGE))
    environment = {item["name"]: item["value"] for item in bridge["env"]}
    assert (environment["KANDEV_MCP_URL"], environment["KANDEV_MCP_TOKEN"]) == (OURS.url, OURS.token)
    assert environment["KANDEV_EXECUTION"] == "e1", "it is found and ended with the execution"
    assert not [word for word in bridge["args"] if OURS.token in word]
    assert warnings == ()


async def test_an_agent_that_takes_neither_is_said_to_have_no_tools(stages: MakeStage) -> None:
    servers, warnings = await opened(stages, {"mcpCapabilities": {"http": False, "stdio": False}}, [])
    assert servers == []
    (warning,) = warnings
    assert warning.startswith("The agent cannot use Kandev's tools")


async def test_a_profiles_server_stands_beside_it_unless_it_has_the_name(stages: MakeStage) -> None:
    mine = {"name": "mine", "command": "mine"}
    impostor = {"name": "kandev", "command": "impostor"}
    servers, warnings = await opened(stages, {"mcpCapabilities": {"http": True}}, [mine, impostor])
    assert [server["name"] for server in servers] == ["mine", "kandev"]
    assert servers[1] == OVER_HTTP
    assert warnings == ("The profile's MCP server kandev was left out: Kandev's own has that name.",)
