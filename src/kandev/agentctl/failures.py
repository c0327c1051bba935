"""What goes wrong with an agent, whoever notices. Not here: how agentctl refuses a request (`refusals`)."""


class StartFailed(Exception):
    """The agent did not come up. The message is one sentence for a person, in the agent's own words where it
    gave any (authentication demanded, a command that does not exist, no answer)."""


class EndedEarly(StartFailed):
    """The agent was gone, or took nothing, before it was ready: how it ended says more than the message."""


class WriteFailed(Exception):
    """The agent no longer takes input: the pipe is closed, or the write met its deadline."""
