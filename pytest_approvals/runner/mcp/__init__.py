"""Real MCP servers on the loopback, over streamable HTTP and over stdio, whose tools run in this process."""
