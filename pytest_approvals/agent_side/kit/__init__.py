"""Shared parts of adapters: context, clients, tool schemas and arguments, probes, and feature detection."""
