"""What happened: events, journals on disk, the calls seen in them, transcripts."""
