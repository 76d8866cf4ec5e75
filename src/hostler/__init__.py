"""Takes AI cluster nodes from power-on into production, watches them there, and brings them back."""
