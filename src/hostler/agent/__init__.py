"""The agent on every node: it observes, keeps what it saw until the controller has it, and acts when asked."""
