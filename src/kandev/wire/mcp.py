"""The documents of a lane: tool calls of an instance's agent on their way to the backend, and the answers.

A lane is a WebSocket on the path of the event stream (`?lane=mcp`), one JSON document per text message. The
MCP messages are carried as they are: nobody but the agent and the backend reads them. Not here: how calls are
held (`kandev.agentctl.tunnel`) and answered (`kandev.execution.lanes`).
"""

import msgspec


class Document(msgspec.Struct, omit_defaults=True, kw_only=True, tag_field="type"):
    """Unknown members are ignored, so that old and new programs can talk."""


# -- agentctl to the backend --------------------------------------------------------------------


class McpLane(Document, tag="lane"):
    """The first document of a lane: the calls that are open. What the backend knows beside them is over."""

    calls: list[str]


class McpCall(Document, tag="call"):
    """A request of the agent. `call_id` is unique for ever; `again`: it may have been handed over before, by
    an earlier lane. `version` is the MCP version that the agent's client speaks, if it said so."""

    call_id: str
    message: msgspec.Raw
    again: bool = False
    version: str | None = None


class McpLeft(Document, tag="left"):
    """The agent does not wait for this call any more."""

    call_id: str


class McpServed(Document, tag="served"):
    """The answer was written to the agent (`served`), or the agent had gone."""

    call_id: str
    served: bool


# -- the backend to agentctl --------------------------------------------------------------------


class McpAnswer(Document, tag="answer"):
    """A message for the agent: a notification about its call, or with `last` the response."""

    call_id: str
    message: msgspec.Raw
    last: bool = False


FromAgent = McpLane | McpCall | McpLeft | McpServed

_FROM_AGENT = msgspec.json.Decoder(FromAgent)
_ANSWER = msgspec.json.Decoder(McpAnswer)


def read_from_agent(text: bytes | str) -> FromAgent:
    """Raises msgspec.DecodeError."""
    return _FROM_AGENT.decode(text)


def read_answer(text: bytes | str) -> McpAnswer:
    """Raises msgspec.DecodeError."""
    return _ANSWER.decode(text)
