"""`python -m kandev.agentctl.mock_agent`: the mock agent by itself. Nothing but the call lives here."""

from __future__ import annotations

import sys

from kandev.agentctl.mock_agent.app import main

sys.exit(main(sys.argv[1:]))
