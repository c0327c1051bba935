"""The commands and where they live; each is imported when it is asked for.

`agentctl` and `mock-agent` stand here for the help: `__main__` starts them without this module.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from kandev import __version__
from kandev.cli.failures import without_traceback

COMMANDS = {
    "serve": "serving:serve",
    "agentctl": "serving:agentctl",
    "mock-agent": "serving:mock_agent",
    "call": "calling:call",
    "task": "tasks:task",
    "session": "sessions:session",
    "message": "messages:message",
    "queue": "queues:queue",
    "cancel": "turns:cancel",
    "stop": "turns:stop",
    "tail": "tail:tail",
    "permission": "permissions:permission",
    "answer": "questions:answer",
    "agents": "agents:agents",
    "profile": "agents:profile",
    "repository": "board:repository",
    "workspace": "board:workspace",
    "workflow": "board:workflow",
    "db": "database:db",
    "doctor": "doctor:doctor",
}


class LazyGroup(click.Group):
    """Imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name].split(":")
        command = getattr(import_module(f"kandev.cli.{module}"), name)
        assert isinstance(command, click.Command)  # noqa: S101 - our own table
        return command


@click.group(
    cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, "-V", "--version", prog_name="kandev", message="%(prog)s %(version)s")
@click.pass_context
def kandev(context: click.Context) -> None:
    """Run coding agents on tasks, each in its own worktree. Without a command: serve."""
    if context.invoked_subcommand is None:
        serve = kandev.get_command(context, "serve")
        if serve is not None:
            with serve.make_context("serve", [], parent=context) as inner:
                serve.invoke(inner)


def run(words: Sequence[str]) -> int:
    """Runs one command; the exit code. Options of `serve` may stand where a command would."""
    if not os.environ.get("KANDEV_TRACEBACK"):
        sys.excepthook = without_traceback
    asks_program = {"-h", "--help", "-V", "--version"}
    if words and words[0].startswith("-") and words[0] not in asks_program:
        words = ["serve", *words]
    try:
        kandev.main(args=list(words), prog_name="kandev")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
