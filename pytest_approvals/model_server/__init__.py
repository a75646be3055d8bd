"""Scripted model as an HTTP server on the loopback interface."""
