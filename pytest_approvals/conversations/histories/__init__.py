"""
Readers of conversations that frameworks have stored: every format gives the same neutral `Conversation`.

    files ──► documents ──► format ──► reader ──► Conversation ──► journal

Histories are untrusted: they are parsed as JSON and looked at; nothing in them is run, imported or unpickled.
"""
