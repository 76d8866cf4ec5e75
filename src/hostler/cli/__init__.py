"""The command line: commands, their output and their screens."""
