"""Scenarios from stored conversations: built, tried on agents, and minimized.

StoredConversation ──► journal ──► ScenarioDraft ──► document ──► YAML text
                                     │  ▲
                                     └──┴ shrunk while the same check fails on the same agent
"""
