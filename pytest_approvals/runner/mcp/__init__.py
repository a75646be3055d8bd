"""Real MCP servers on the loopback interface, over streamable HTTP and stdio, whose tools run in this process."""
