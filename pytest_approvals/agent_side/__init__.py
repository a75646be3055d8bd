"""
What runs beside the agent under test: standard library only, Python 3.10 up.

This folder is copied into environments that hold nothing but a framework, so no module in it imports anything from the
rest of the package.
"""
