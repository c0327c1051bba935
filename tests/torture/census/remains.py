"""What is left: processes, control groups, files, open descriptors, and complaints in the logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.torture.evidence import Evidence

MOST_DESCRIPTORS = {"backend": 15, "agentctl": 8, "backend's sockets": 24, "agentctl's sockets": 24}
"""Without a single agent: database, locks, logs and the loop; listeners, and connections that are kept for a
while."""
KEPT = (
    "agentctl.lock",
    "agentctl.log",
    "agentctl/epoch",
    "agentctl/tombstones",
    "backend.err",
    "backend.lock",
    "kandev.db",
)
"""What lies in a home where nothing runs."""
KEPT_BELOW = ("tasks/", "worktrees/", "backups/")


def judge(evidence: Evidence) -> Iterator[str]:
    """See the module."""
    yield from _processes(evidence)
    for group in evidence.groups:
        yield f"gone: the control group {group} is left"
    for file in left_over(evidence.files):
        yield f"files: {file} is left in the home"
    for complaint in evidence.complaints:
        yield f"logs: {complaint}"
    for program, count in evidence.descriptors.items():
        if count > MOST_DESCRIPTORS[program]:
            yield f"descriptors: {program} has {count} open without an agent"
    if evidence.swept:
        yield f"nothing to sweep: the sweep found {evidence.swept:.0f} sessions"


def left_over(files: Iterable[str]) -> list[str]:
    """Those that do not belong into a home where nothing runs."""
    return [file for file in files if file not in KEPT and not file.startswith(KEPT_BELOW)]


def _processes(evidence: Evidence) -> Iterator[str]:
    ready = {
        f"{s['id']}.{s['value']['executions']}"
        for s in evidence.books.sessions
        if s["value"].get("launch") == "ready"
    }
    agents = {one.execution for one in evidence.living if "mock-agent" in one.command}
    for one in evidence.living:
        if one.execution not in ready:
            yield f"gone: process {one.pid} ({one.command}) of {one.execution}, which is over, lives"
    for execution in sorted(ready - agents):
        yield f"gone: {execution} is ready and has no process"
    for one in evidence.left:
        yield f"gone: process {one.pid} ({one.command}) of {one.execution} lives when everything is ended"
