"""
What stands around the agent under test: the run loop, the scripted model, probe tools, the caller, the store, the host.
"""
