"""The pure core: decides what each node needs next, from values alone, without a clock or I/O."""
