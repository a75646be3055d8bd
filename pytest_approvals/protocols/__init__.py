"""The protocols of model providers: what their clients send, how they answer, and what they refuse."""
