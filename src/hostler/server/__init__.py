"""The server: takes observations and intents over HTTP, and shows the fleet."""
