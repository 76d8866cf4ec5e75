"""Prints how much of each vendor's documents the Redfish driver reads: the table of docs/redfish-vendors.md."""

import asyncio
import sys

from tests.contract.redfish_vendors import table


def main() -> None:
    """Print the table."""
    sys.stdout.write(asyncio.run(table()))


if __name__ == "__main__":
    main()
