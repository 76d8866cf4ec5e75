"""The tables of kernel-log messages, one module for each family."""
