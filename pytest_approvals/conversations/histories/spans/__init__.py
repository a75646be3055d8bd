"""Traces as conversations: spans of OpenTelemetry, traces of OpenAI Agents, runs of LangSmith.

document ──► spans ──► steps (model, tool, agent) ──► the steps of one conversation ──► StoredConversation
"""
