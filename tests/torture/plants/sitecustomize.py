"""Python imports this at each start when the folder is on its path: plants the named bug in our programs.

Only into the backend and into agentctl; everything else starts as it is.
"""

import os
import sys

PROGRAMS = ("serve", "agentctl")

if (name := os.environ.get("TORTURE_PLANT")) and any(word in PROGRAMS for word in sys.orig_argv):
    from tests.torture.planted import plant

    plant(name)
