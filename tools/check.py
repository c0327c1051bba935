"""All checks that need no running product: lint, format, types, import rules, sizes, words.

`python tools/check.py [NAME …]` runs them, prints what each found and exits 1 when one failed. `tests/house`
runs the same list, so that one test run and one `just check` can never disagree.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The programs of the environment that runs this file, whatever PATH says.
BIN = Path(sys.executable).parent

CHECKS: dict[str, tuple[str, ...]] = {
    "ruff check": (str(BIN / "ruff"), "check", "--quiet", "."),
    "ruff format": (str(BIN / "ruff"), "format", "--check", "--quiet", "."),
    "mypy": (sys.executable, "-m", "mypy"),
    "import rules": (str(BIN / "lint-imports"),),
    "sizes": (sys.executable, "tools/check_size.py"),
    "words": (sys.executable, "tools/check_words.py"),
}
DEADLINE = 600.0  # seconds; a cold type check of everything on a slow machine takes about one minute


def run(name: str) -> tuple[bool, str]:
    """Run one check: whether it passed, and what it printed."""
    done = subprocess.run(
        CHECKS[name],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    return done.returncode == 0, done.stdout


def main(names: list[str]) -> int:
    """Run the named checks, all without names; the exit code is 1 when one failed, 2 for an unknown name."""
    if unknown := [name for name in names if name not in CHECKS]:
        print(f"There is no check named {unknown[0]}; there are: {', '.join(CHECKS)}.", file=sys.stderr)
        return 2
    failed = []
    for name in names or CHECKS:
        began = time.monotonic()
        passed, output = run(name)
        print(f"{name}: {'ok' if passed else 'FAILED'} ({time.monotonic() - began:.1f} s)", flush=True)
        if not passed:
            print(output.rstrip(), flush=True)
            failed.append(name)
    if failed:
        print(f"Failed: {', '.join(failed)}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
