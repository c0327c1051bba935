"""The census after a round: each rule that the evidence breaks, as a sentence. Pure functions of evidence.

Not here: how the evidence is collected (`tests.torture.evidence`).
"""

from __future__ import annotations

from tests.torture.census import fates, remains, streams, transcripts, turns
from tests.torture.evidence import Evidence


def judge(evidence: Evidence) -> list[str]:
    """What is violated, `rule: details` each."""
    return [said for part in (fates, turns, streams, transcripts, remains) for said in part.judge(evidence)]
