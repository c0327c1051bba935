"""Turn control, simulated: real core, actors, use cases and SQL in a simulated world and virtual time."""
