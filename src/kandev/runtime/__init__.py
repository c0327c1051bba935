"""The imperative shell around the core: actors, their effects, their registry."""
