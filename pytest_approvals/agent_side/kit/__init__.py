"""Shared parts of adapters: context, clients, tool schemas, probes, arguments and feature detection."""
