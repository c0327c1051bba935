"""What the rules need of the world, as Protocols, each with its contract in the docstring."""
