"""Journals: events, files, the history model built from them, validation, descriptions and transcripts."""
