"""The command line, where all the rooms are put together."""
