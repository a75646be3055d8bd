"""Scripted model as an HTTP server on the loopback interface, for agents in other processes and languages."""
