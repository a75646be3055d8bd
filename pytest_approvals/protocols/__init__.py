"""The protocols of model providers: what they refuse."""
