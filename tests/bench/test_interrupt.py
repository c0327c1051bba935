"""An interrupt is measured from its call to its answer and to the child's first word, if it was one."""

import json
import time
from typing import Any

import pytest

from bench import interrupt, stamping_agent
from bench.interrupt import Samples


def test_an_interrupt_counts_from_its_call_to_its_answer_and_to_the_first_word() -> None:
    samples = Samples()
    told = {"began": 1_000_000_000, "answered": 1_030_000_000, "result": {}}
    interrupt._take(told, {"status": "sent"}, 1.02, samples)
    assert samples.sent == pytest.approx([0.03])
    assert samples.word == pytest.approx([0.02])


@pytest.mark.parametrize("answer", [{"status": "queued"}, {}])
def test_a_message_that_was_no_interrupt_fails_the_benchmark_and_is_shown(answer: dict[str, Any]) -> None:
    told = {"began": 0, "answered": 1, "result": {"isError": True, "text": "[FORBIDDEN] no"}}
    with pytest.raises(RuntimeError, match="FORBIDDEN"):
        interrupt._take(told, answer, time.monotonic(), Samples())


def test_the_agent_of_the_benchmark_says_when_it_called_and_what_it_was_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Behind Kandev's own blocks, in one chunk."""
    frames: list[dict[str, Any]] = []
    monkeypatch.setattr(stamping_agent, "call", lambda server, tool, given: {"of": [server, tool, given]})
    monkeypatch.setattr(stamping_agent.Wire, "send", staticmethod(frames.append))
    text = '<kandev-context>say call</kandev-context>\ncall a_tool {"a": 1}'
    params = {"sessionId": "s", "prompt": [{"type": "text", "text": text}]}
    server = {"url": "u"}
    assert stamping_agent.play(stamping_agent.Wire(), [server], params) == {"stopReason": "end_turn"}
    (frame,) = frames
    told = json.loads(frame["params"]["update"]["content"]["text"])
    assert told["result"] == {"of": [server, "a_tool", {"a": 1}]}
    assert told["began"] <= told["answered"]
