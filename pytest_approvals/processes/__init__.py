"""Agents in other processes: the pool, the connection, and the agent as its counterpart."""
