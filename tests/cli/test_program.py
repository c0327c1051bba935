"""The program itself: light where it must be light, and plain about wrong usage."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from kandev import __version__, bootstrap, config
from kandev.cli import program
from kandev.cli.failures import without_traceback
from tests.cli.conftest import SOURCES, Kandev

HEAVY = (
    "click",
    "rich",
    "httpx",
    "sqlalchemy",
    "starlette",
    "uvicorn",
    "msgspec",
    "websockets",
    "asyncio",
    "structlog",
)


def imported_by(*words: str) -> set[str]:
    """Top-level modules that running `kandev WORDS` imports."""
    code = (
        "import sys; from kandev.__main__ import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=os.environ | {"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.proves("CLI-version")
def test_the_version_is_printed_without_importing_anything_heavy(kandev: Kandev) -> None:
    ran = kandev("--version")

    assert (ran.code, ran.out, ran.err) == (0, f"kandev {__version__}\n", "")
    assert not imported_by("--version") & set(HEAVY)


def test_the_sidecar_and_the_mock_agent_start_without_the_command_lines_libraries() -> None:
    unwanted = {"rich", "httpx", "sqlalchemy", "structlog", "pydantic"}

    assert not imported_by("mock-agent", "--help") & {*unwanted, "click", "starlette", "uvicorn"}
    assert not imported_by("agentctl", "--help") & unwanted


def test_a_client_command_imports_nothing_of_the_backend(kandev: Kandev) -> None:
    assert not imported_by("task", "list", "--url", "http://127.0.0.1:9") & {
        "sqlalchemy",
        "uvicorn",
        "structlog",
    }


@pytest.mark.proves("CLI-commands")
@pytest.mark.parametrize("name", sorted(set(program.COMMANDS) - {"agentctl", "mock-agent"}))
def test_every_command_has_help_and_offers_json(kandev: Kandev, name: str) -> None:
    ran = kandev(name, "--help")
    assert ran.code == 0
    command = program.kandev.get_command(click.Context(program.kandev), name)
    assert command is not None
    inner = getattr(command, "commands", {"": command})
    for part in inner.values():
        offered = {option for parameter in part.params for option in parameter.opts}
        assert "--json" in offered or name in ("serve", "call"), f"{name} {part.name} has no --json"


@pytest.mark.parametrize("words", [("bogus",), ("task",), ("stop",), ("--port", "abc"), ("tail",), ("call",)])
@pytest.mark.proves("BAD-no-traceback")
def test_wrong_usage_is_exit_code_2_and_a_sentence(kandev: Kandev, words: tuple[str, ...]) -> None:
    ran = kandev(*words)

    assert ran.code == 2
    assert "Usage:" in ran.out + ran.err
    assert "Traceback" not in ran.err


def instead_of_serving(monkeypatch: pytest.MonkeyPatch, code: int) -> list[config.Settings]:
    """Collects the settings with which the backend would be served."""
    served: list[config.Settings] = []

    def serve(settings: config.Settings) -> int:
        served.append(settings)
        return code

    monkeypatch.setattr(bootstrap, "serve", serve)
    return served


@pytest.mark.parametrize("words", [(), ("serve",)])
def test_without_a_command_the_backend_is_served(
    kandev: Kandev, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = instead_of_serving(monkeypatch, 7)

    ran = kandev(*words)

    assert (ran.code, served[0].port, served[0].browser) == (7, 38429, True)
    assert served[0].home == kandev.home


def test_options_of_serve_reach_the_settings(kandev: Kandev, monkeypatch: pytest.MonkeyPatch) -> None:
    served = instead_of_serving(monkeypatch, 0)

    ran = kandev(
        "--port", "0", "--no-browser", "--stop-agents", "--host", "::1", "--home", str(kandev.home / "x")
    )

    assert ran.code == 0
    settings = served[0]
    assert (settings.port, settings.host, settings.browser, settings.stop_agents) == (0, "::1", False, True)
    assert settings.home == kandev.home / "x"


@pytest.mark.proves("CLI-wrong-setting", "CLI-postgresql", "BAD-no-traceback")
def test_a_wrong_setting_stops_the_start_with_one_sentence(
    kandev: Kandev, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgresql = kandev("serve", "--database-url", "postgresql://localhost/kandev")
    monkeypatch.setenv("KANDEV_LAUNCH_S", "soon")
    number = kandev("serve")

    assert (postgresql.code, postgresql.out) == (1, "")
    assert postgresql.err.startswith("kandev: --database-url: PostgreSQL is not built yet")
    assert (number.code, number.err) == (1, "kandev: KANDEV_LAUNCH_S must be a number, not 'soon'.\n")


def test_a_bug_of_ours_is_a_sentence_too(capsys: pytest.CaptureFixture[str]) -> None:
    without_traceback(ValueError, ValueError("boom"))

    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "ValueError: boom" in err
