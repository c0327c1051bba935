"""A model server on loopback whose answers are scripted by the prompt itself.

It speaks OpenAI chat completions and responses, Anthropic messages and Gemini, so that a real agent program
runs without credentials and without a network. `directives` lists what a prompt can ask for. Not for judging
how good a model is: it understands nothing.
"""

from .directives import Action, Plan, Planner
from .request_log import Entry, RequestLog
from .server import ScriptedModel

__all__ = ["Action", "Entry", "Plan", "Planner", "RequestLog", "ScriptedModel"]
