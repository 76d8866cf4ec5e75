"""Placeholders that a SKU's or site's configuration may hold, and what they stand for on a node."""

from hostler.core.state.model import Node

PLACEHOLDERS = ("{rack}", "{row}", "{u}", "{site}", "{node}")


def placed(node: Node, template: str) -> str:
    """The text with the node's place and name where placeholders stand."""
    place = node.position
    for name, value in zip(PLACEHOLDERS, (place.rack, place.row, str(place.u), place.site, node.id), strict=True):
        template = template.replace(name, value)
    return template
