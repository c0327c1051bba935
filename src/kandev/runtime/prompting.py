"""The text of a prompt: what its entries say, in order. Not here: handing it over (`effects`)."""

from kandev.core.effects import Prompt
from kandev.ports.store import Tx


def prompt_of(tx: Tx, session_id: str, effect: Prompt) -> str:
    """The same text however often it is asked for, as long as nothing is renamed."""
    rows = [tx.entries.get(e) for e in effect.entries]
    return "\n\n".join(row.content for row in rows if row is not None)
