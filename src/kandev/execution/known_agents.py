"""The agents that Kandev knows: how each is started, got, and logged in to. Data only.

Start commands are those that the agents' own documentation or their entries in the protocol's public list
of agents give; packages are named as their package manager knows them.
Not here: looking for them (`catalogue`).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """`programs`: names to look for on PATH, preferred first; `arguments` start the protocol on stdio."""

    name: str
    title: str
    programs: tuple[str, ...]
    arguments: tuple[str, ...]
    install: str
    login: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    withhold: tuple[str, ...] = ()
    """Client capabilities with which the agent works worse than without."""


def _npm(package: str) -> str:
    return f"npm install -g {package}"


def _uv(package: str) -> str:
    return f"uv tool install {package}"


AGENTS = (
    Recipe(
        "opencode",
        "OpenCode",
        ("opencode",),
        ("acp",),
        _npm("opencode-ai"),
        "Run `opencode auth login` once and choose a provider.",
        (("OPENCODE_DISABLE_AUTOUPDATE", "1"),),
    ),
    Recipe(
        "gemini",
        "Gemini CLI",
        ("gemini",),
        ("--acp",),
        _npm("@google/gemini-cli"),
        "Run `gemini` once and log in, or set GEMINI_API_KEY.",
        # Without it a wrapper stays behind that survives SIGTERM and leaves its child on SIGKILL.
        (("GEMINI_CLI_NO_RELAUNCH", "true"),),
        # Offered the client's files, it cannot create one: it does not understand that a file is missing.
        ("fs",),
    ),
    Recipe(
        "claude",
        "Claude Agent",
        ("claude-agent-acp", "claude-code-acp"),
        (),
        _npm("@agentclientprotocol/claude-agent-acp"),
        "Run `claude` once and log in, or set ANTHROPIC_API_KEY.",
    ),
    Recipe(
        "codex-acp",
        "Codex (over ACP)",
        ("codex-acp",),
        (),
        _npm("@agentclientprotocol/codex-acp"),
        "Run `codex login` once, or set OPENAI_API_KEY.",
    ),
    Recipe(
        "qwen",
        "Qwen Code",
        ("qwen",),
        ("--acp",),
        _npm("@qwen-code/qwen-code"),
        "Run `qwen` once and log in.",
    ),
    Recipe(
        "copilot",
        "GitHub Copilot CLI",
        ("copilot",),
        ("--acp",),
        _npm("@github/copilot"),
        "Run `copilot` once and type /login.",
    ),
    Recipe(
        "auggie",
        "Auggie",
        ("auggie",),
        ("--acp",),
        _npm("@augmentcode/auggie"),
        "Run `auggie login` once.",
    ),
    Recipe(
        "kimi",
        "Kimi Code CLI",
        ("kimi",),
        ("acp",),
        _npm("@moonshot-ai/kimi-code"),
        "Run `kimi login` once.",
    ),
    Recipe(
        "goose",
        "Goose",
        ("goose",),
        ("acp",),
        "Follow the installation page of the Goose project; version 1.8.0 or later is needed.",
        "Run `goose configure` once.",
    ),
    Recipe(
        "cline",
        "Cline",
        ("cline",),
        ("--acp",),
        _npm("cline"),
        "Run `cline` once and log in.",
    ),
    Recipe(
        "vibe",
        "Mistral Vibe",
        ("vibe-acp",),
        (),
        _uv("mistral-vibe"),
        "Run `vibe-acp --setup` once, or set MISTRAL_API_KEY.",
    ),
    Recipe(
        "kilo",
        "Kilo",
        ("kilo", "kilocode"),
        ("acp",),
        _npm("@kilocode/cli"),
        "Run `kilo` once and log in.",
    ),
    Recipe(
        "openhands",
        "OpenHands",
        ("openhands",),
        ("acp",),
        "uv tool install openhands --python 3.12",
        "Run `openhands` once and set the model with /settings.",
    ),
    Recipe(
        "fastagent",
        "fast-agent",
        ("fast-agent-acp",),
        ("-x",),
        _uv("fast-agent-acp"),
        "Set the API key of your model's provider, and FAST_AGENT_MODEL.",
    ),
    Recipe(
        "cursor",
        "Cursor CLI",
        ("cursor-agent",),
        ("acp",),
        "Follow the installation page of the Cursor CLI.",
        "Run `cursor-agent login` once.",
    ),
)
