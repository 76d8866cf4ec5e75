"""Nodes without a scheduler: nobody places work on them, so a cordon is a record and a drain finds nothing."""
