"""Kandev: a self-hosted control plane for coding agents.

Not here: anything that costs time to import; every program of the package passes through this module.
"""

__version__ = "0.1.0"
