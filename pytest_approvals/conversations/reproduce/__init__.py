"""
Scenarios out of stored conversations: made, tried on agents, and made as small as they can be.

    Conversation ──► journal ──► Draft ──► document ──► YAML text
                                   │  ▲
                                   └──┴ shrunk while the same check fails on the same agent
"""
