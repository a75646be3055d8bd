"""Readers of the conversations that frameworks have stored.

Every format becomes the same neutral `StoredConversation`:

    files ──► documents ──► format ──► reader ──► StoredConversation ──► journal

Histories are untrusted: they are parsed as JSON and inspected; nothing in them is executed, imported or unpickled.
"""
