"""Agent processes: RPC server, fork server, network guard, and the world as a proxy."""
