"""The MCP server: kopt's services as tools, pages as resources, and two prompts, for coding agents."""
