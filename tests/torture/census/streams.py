"""Notifications: no number is missing, none comes twice, and who watches is told all of them in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from kandev.gateway.outbox import REPLACEABLE
from tests.torture.evidence import Evidence
from tests.torture.watcher import Heard


def judge(evidence: Evidence) -> Iterator[str]:
    """See the module."""
    kept: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for row in evidence.books.notifications:
        kept[row["stream"], row["stream_id"]][row["seq"]] = row["action"]
    for stream in evidence.books.streams:
        numbers = sorted(kept[stream["stream"], stream["stream_id"]])
        if numbers != list(range(stream["pruned"] + 1, stream["last"] + 1)):
            missing = sorted(set(range(stream["pruned"] + 1, stream["last"] + 1)) - set(numbers))
            yield f"gapless: {stream['stream_id']} ends at {stream['last']}, {missing} are missing"
    alive = {row["id"] for row in evidence.books.sessions}
    for heard in evidence.heard:
        if heard.session_id in alive:
            yield from _heard(heard, kept["session", heard.session_id])
    for fault in evidence.books.faults:
        yield f"database: {fault}"


def _heard(heard: Heard, kept: dict[int, str]) -> Iterator[str]:
    answer = heard.answer
    if answer is None:
        return
    since = answer["seq"] if answer.get("reload") else heard.since
    for (before, _), (seq, action) in pairwise(heard.frames):
        if seq <= before:
            yield f"watchers: {heard.session_id} was told {seq} ({action}) after {before}"
    for seq, action in heard.frames:
        if action != "session.reload" and seq <= max(kept, default=0) and kept.get(seq, action) != action:
            yield f"watchers: {heard.session_id} was told {seq} is {action}, and it is {kept[seq]}"
        if seq <= since:
            yield f"watchers: {heard.session_id} was told {seq} again, behind {since}"
    told = {seq for seq, _ in heard.frames}
    if not told or any(action == "session.reload" for _, action in heard.frames):
        return
    due = {n for n, action in kept.items() if since < n <= max(told) and action not in REPLACEABLE}
    if missing := sorted(due - told):
        yield f"watchers: {heard.session_id} behind {since} was never told {[(n, kept[n]) for n in missing]}"
