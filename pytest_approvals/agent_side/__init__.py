"""Agent side: what runs in the process of the agent under test, on the standard library of Python 3.10 and newer.

This folder is copied into environments that hold nothing but a framework, so no module in it imports anything from the
rest of the package.
"""
