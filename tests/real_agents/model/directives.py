"""What the scripted model answers: the directives in the text of the last user message.

    [slow N]         stream a word every 50 ms for N seconds
    [shell CMD]      call the agent's shell tool (found among the offered tools) with CMD
    [bg CMD]         the same, with the tool's background flag set where it has one
    [mcp TOOL JSON]  call the offered tool whose name contains TOOL with JSON as arguments
    [ask]            a shell call with a side effect (touch asked-<n>.txt), escalated where the schema knows
    [write PATH TEXT] call the agent's file writing tool
    [think N]        stream N seconds of reasoning, then a line of text
    [big KB]         KB kilobytes of text at once
    [error CODE]     HTTP error CODE (429, 500, 401, 400, …)
    [hang]           accept the request and send nothing
    [cut]            send a few pieces, then drop the connection
    anything else    one line: "echo: <the text>"

Several directives run one after the other: the k-th is played when k tool results stand behind the user
message. When they are used up: "done: <last tool result>". A request that offers no tools (titles, routing)
gets a short plain answer, unless the text says [notools]. Not for the wire formats: those are modules of
their own.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from . import mcp_tools
from .tools import Call, Tool, shell_call, write_call

DIRECTIVE = re.compile(
    r"\[(slow|shell|bg|mcp|ask|write|think|big|error|hang|cut)\b((?:[^\[\]]|\[[^\[\]]*\])*)\]", re.DOTALL
)
SIDE_ANSWER = "mock title"


class Action(StrEnum):
    """What an answer does."""

    SIDE = "side"
    ECHO = "echo"
    DONE = "done"
    SLOW = "slow"
    THINK = "think"
    BIG = "big"
    ERROR = "error"
    HANG = "hang"
    CUT = "cut"
    CALL = "call"
    NO_TOOL = "notool"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request in no format: the last user text, the tool results behind it, the offered tools."""

    text: str
    results: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """One answer. `seconds` belongs to SLOW and THINK, `code` to ERROR, `call` to CALL."""

    action: Action
    text: str = ""
    seconds: float = 0.0
    code: int = 0
    call: Call | None = None


@dataclass
class Planner:
    """Chooses the answers of one server. It remembers which texts have already cost a search for a tool."""

    _searched: set[str] = field(default_factory=set)

    def plan(self, asked: Asked, number: int) -> Plan:
        """The answer to the `number`-th request (1, 2, …) of the server."""
        if not asked.tools and "[notools]" not in asked.text:
            return Plan(Action.SIDE, SIDE_ANSWER)
        if not asked.results:
            self._searched.discard(asked.text)
        directives = [(found.group(1), found.group(2).strip()) for found in DIRECTIVE.finditer(asked.text)]
        played = len(asked.results) - (asked.text in self._searched)
        if played < len(directives):
            return self._directive(*directives[played], asked, number)
        if played:
            return Plan(Action.DONE, f"done: {one_line(asked.results[-1])[:300]}")
        return Plan(Action.ECHO, f"echo: {one_line(asked.text)[:200]}")

    def _directive(self, name: str, argument: str, asked: Asked, number: int) -> Plan:
        if name in _ANSWERS:
            return _ANSWERS[name](argument)
        call = self._call(name, argument, asked, number)
        if call is None:
            offered = [tool.name for tool in asked.tools][:60]
            return Plan(Action.NO_TOOL, f"no tool for [{name} {argument[:40]}] among {offered}")
        return Plan(Action.CALL, call=call)

    def _call(self, name: str, argument: str, asked: Asked, number: int) -> Call | None:
        word, _, rest = argument.partition(" ")
        match name:
            case "ask":
                return shell_call(asked.tools, f"touch asked-{number}.txt", ask=True)
            case "write":
                return write_call(asked.tools, word, rest or "mock text\n")
            case "mcp":
                return self._mcp_call(word, rest.strip(), asked)
            case _:
                return shell_call(asked.tools, argument, background=name == "bg")

    def _mcp_call(self, name: str, arguments: str, asked: Asked) -> Call | None:
        if plain := mcp_tools.plain_call(asked.tools, name, arguments):
            return plain
        search = mcp_tools.search_call(asked.tools, name)
        if search and asked.text not in self._searched:
            self._searched.add(asked.text)
            return search
        last = asked.results[-1] if asked.results else ""
        found = mcp_tools.found_call(asked.tools, name, arguments, last)
        return found or mcp_tools.script_call(asked.tools, name, arguments)


def one_line(text: str) -> str:
    """The text with every run of white space as one blank."""
    return " ".join(text.split())


def _big(kilobytes: int) -> str:
    # Numbers that do not repeat: Gemini's agent ends a turn when it takes repeated text for a loop.
    return "".join(f"{index * 7919 % 1000003:07d} " for index in range(kilobytes * 128))


_ANSWERS: dict[str, Callable[[str], Plan]] = {
    "slow": lambda argument: Plan(Action.SLOW, seconds=float(argument or 10)),
    "think": lambda argument: Plan(Action.THINK, seconds=float(argument or 10)),
    "big": lambda argument: Plan(Action.BIG, _big(int(argument or 64))),
    "error": lambda argument: Plan(Action.ERROR, code=int(argument or 500)),
    "hang": lambda _: Plan(Action.HANG),
    "cut": lambda _: Plan(Action.CUT),
}
