"""Requirements of a gate before it lets a node through, judged by its readings. Pure."""
