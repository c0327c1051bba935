"""The Agent Client Protocol (ACP), version 1, over an agent's stdio.

Source: agentclientprotocol.com, schema 1.19; and what real agents do beside it.
"""

from kandev.agentctl.adapters.acp.adapter import AcpAdapter

__all__ = ["AcpAdapter"]
