"""An example of what another distribution can bring: an adapter, a check, an oracle and a reporter."""
