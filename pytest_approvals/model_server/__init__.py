"""The scripted model behind a server on the loopback, for agents in other processes and other languages."""
