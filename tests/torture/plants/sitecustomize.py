"""Python imports this at each start when the folder is on its path: it plants a bug, and arms points.

Only in the backend and in agentctl; everything else starts as it is.
"""

import os
import sys

program = next((word for word in sys.orig_argv if word in ("serve", "agentctl")), None)

if program is not None:
    if os.environ.get("TORTURE_PLANT"):
        from tests.torture.planted import plant

        plant(os.environ["TORTURE_PLANT"])
    if os.environ.get("TORTURE_POINTS"):
        from tests.torture.points import arm

        arm(program)
