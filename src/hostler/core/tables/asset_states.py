"""The states of assets that are not nodes, and what leads from one to the next."""

ASSET_TRANSITIONS: tuple[tuple[str, str, str], ...] = (
    ("in_service", "leaked", "a leak detector is wet"),
    ("leaked", "off", "protective power-off"),
    ("leaked", "in_service", "a named person says that it is sound"),
    ("in_service", "in_repair", "a ticket was started"),
    ("off", "in_repair", "a ticket was started"),
    ("in_repair", "in_service", "repaired"),
    ("off", "in_service", "a named person says that it is sound; it is powered on"),
    ("in_service", "off", "it could not be powered on"),
)
"""The small lifecycle of assets that are not nodes: from, to, on."""
