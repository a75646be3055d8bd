"""Real MCP servers over streamable HTTP and stdio, whose tools run in this process."""
