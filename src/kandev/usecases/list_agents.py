"""The agents that Kandev knows, and which of them are on this machine.

Not here: how they are looked for (`ports.catalogue`), profiles (`profiles`).
"""

from kandev.ports.catalogue import KnownAgent
from kandev.usecases.context import Context


async def list_agents(ctx: Context, *, versions: bool = True) -> tuple[KnownAgent, ...]:
    """The mock agent first, in a fixed order. `versions` asks the found ones for theirs, which takes a
    moment."""
    return await ctx.catalogue.look(versions=versions)
