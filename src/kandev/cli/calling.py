"""`call`: one action of the catalogue, JSON in and JSON out, for scripts.

Not here: which actions there are; the backend says so.
"""

import json
from typing import Any

import click

from kandev.cli.client import Client, client_command, text_or_stdin
from kandev.cli.output import dumps


@click.command()
@click.argument("action")
@click.argument("payload", required=False, metavar="[JSON]")
@client_command
def call(client: Client, action: str, payload: str | None) -> None:
    """Send one request: ACTION with a JSON object (- reads it from stdin) and print the answer as JSON."""
    asked = _object(text_or_stdin(payload))
    client.backend.as_json = True
    click.echo(dumps(client.backend.call(action, asked)))


def _object(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"The payload is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise click.UsageError("The payload must be a JSON object.")
    return found
