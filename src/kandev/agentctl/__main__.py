"""`python -m kandev.agentctl`: the sidecar by itself. Not here: anything but the call of `main`."""

import sys

from kandev.agentctl.main import main

sys.exit(main(sys.argv[1:]))
