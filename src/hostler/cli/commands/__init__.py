"""The commands, one module a noun. Each is imported only when it is called."""
