"""RPC between the harness and agent processes: transport, peers, messages and serialization."""
