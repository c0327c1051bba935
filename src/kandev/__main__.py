"""The program `kandev`: chooses the part that is asked for and imports nothing else.

agentctl and the mock agent start by the hundred and must stay light, `--version` must be fast: all three are
recognised here, before the command line's libraries are imported. Not here: any command (`cli`).
"""

import sys
from collections.abc import Sequence

from kandev import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 0 done, 1 refused or failed, 2 wrong usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    match words[:1]:
        case ["--version" | "-V"] if len(words) == 1:
            sys.stdout.write(f"kandev {__version__}\n")
            return 0
        case ["agentctl"] if words[1:2] == ["mcp-bridge"]:
            from kandev.agentctl.tunnel.bridge import main as bridge

            return bridge()
        case ["agentctl"]:
            from kandev.agentctl.main import main as agentctl

            return agentctl(words[1:])
        case ["mock-agent"]:
            from kandev.agentctl.mock_agent import main as mock_agent

            return mock_agent(words[1:])
    from kandev.cli.program import run

    return run(words)


if __name__ == "__main__":
    sys.exit(main())
