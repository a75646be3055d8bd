"""What should happen: the scenario language, its loader, its builders and the variants of a scenario."""
