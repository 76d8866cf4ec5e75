"""An Ironic that has machines of the cell: power and boots are asked of it."""
