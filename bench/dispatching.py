"""`kandev` whose every call of an agent's action says when it began and when it was answered: run by its path
in place of `kandev`.

One line of JSON per call goes to the file that BENCH_DISPATCHED names.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from kandev.__main__ import main
from kandev.mcp import actions

_dispatch = actions.dispatch_mcp


async def _timed(*arguments: Any) -> dict[str, Any]:
    began = time.monotonic_ns()
    answer = await _dispatch(*arguments)
    told = {"began": began, "answered": time.monotonic_ns(), "result": answer}
    with Path(os.environ["BENCH_DISPATCHED"]).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(told) + "\n")
    return answer


if __name__ == "__main__":
    vars(actions)["dispatch_mcp"] = _timed
    sys.exit(main())
