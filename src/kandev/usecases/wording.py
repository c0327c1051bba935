"""What every message has to be, and what is said of one whose fate nobody knows. Not here: who sends it."""

from kandev.core.errors import Internal, Invalid


def something(content: str) -> str:
    """The content itself. Raises Invalid when it says nothing."""
    if not content.strip():
        raise Invalid("content is empty: say something.")
    return content


def delivery_unknown(entry_id: str, sentence: str | None = None) -> Internal:
    """The error of a message that the agent may have, or not."""
    details = {"error": "delivery_unknown", "entry_id": entry_id}
    return Internal(sentence or "Nobody can tell whether the agent got the message.", details)
