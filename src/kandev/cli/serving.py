"""`serve`: the settings from the command line, and the start of the backend.

Not here: what the backend is made of (`bootstrap`). agentctl and the mock agent stand here for the help only.
"""

import sys

import click

from kandev import config
from kandev.cli.failures import Failed


@click.command()
@click.option("--host", help="Address to listen on (default 127.0.0.1).")
@click.option("--port", type=int, help="Port to listen on (default 38429; 0 picks a free one).")
@click.option("--home", metavar="DIR", help="Folder of everything Kandev keeps (default ~/.kandev).")
@click.option("--database-url", metavar="URL", help="Database (default SQLite in the home).")
@click.option("--no-browser", is_flag=True, help="Do not open the browser.")
@click.option("--stop-agents", is_flag=True, help="End running agents too when Kandev ends.")
def serve(
    host: str | None,
    port: int | None,
    home: str | None,
    database_url: str | None,
    no_browser: bool,
    stop_agents: bool,
) -> None:
    """Run the backend in the foreground."""
    flags: dict[str, object] = {
        "host": host,
        "port": port,
        "home": home,
        "database_url": database_url,
        "browser": False if no_browser else None,
        "stop_agents": True if stop_agents else None,
    }
    try:
        settings = config.read(flags)
    except config.BadSetting as error:
        raise Failed(str(error)) from None
    from kandev import bootstrap

    sys.exit(bootstrap.serve(settings))


@click.command(add_help_option=False)
def agentctl() -> None:
    """Run the sidecar that owns agent processes, by itself."""


@click.command(add_help_option=False)
def mock_agent() -> None:
    """Be a scripted ACP agent on stdin and stdout."""
