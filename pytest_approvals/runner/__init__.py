"""Runner: plays one scenario in one variant on one agent, and records the journal."""
