"""Redacts nouns for tenants: by the kind of each field, never by its content.

A field is either the tenant's own to read, a name that is shown where it names something of theirs, or it is replaced:
texts that people wrote or that Hostler composed from more than this node by a sentence for their kind. Nothing is
looked for in a text, so that no answer depends on how other customers are called. What no row names is left out.
"""

from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from hostler.core.report.explanation_chains import Explanation
from hostler.core.state.fleet import Fleet
from hostler.server.api_resources import HistoryRow
from hostler.server.tenant_redaction_rules import FIELDS, Own, unnamed

T = TypeVar("T")


class TenantRedaction:
    """Redaction for one tenant. `also` are nodes that were theirs when what is shown happened."""

    def __init__(self, fleet: Fleet, tenant: str, also: frozenset[str] = frozenset()) -> None:
        self._own = Own(fleet, tenant, also)

    def over(self, value: T) -> T:
        """The value as the tenant is shown it, of the same type. To show what was shown changes nothing.

        Rows of the API pass with the words in them: whoever makes them makes them of nouns that were shown.
        """
        shown: T = self._over(value)
        return shown

    def _over(self, value: Any) -> Any:
        if isinstance(value, Struct):
            return self._struct(value)
        if isinstance(value, tuple | list):
            return tuple(self._over(one) for one in value)
        if isinstance(value, dict):
            return {key: self._over(one) for key, one in value.items()}
        return value

    def _struct(self, noun: Struct) -> Struct:
        if isinstance(noun, HistoryRow | Explanation):
            return noun  # made of records that were shown, as of the time they are from
        rows = FIELDS.get(type(noun))
        changed: dict[str, Any] = {}
        for name in noun.__struct_fields__:
            value = getattr(noun, name)
            told = value if rows is None else rows.get(name, unnamed)(self._own, noun, value)
            shown = self._over(told)
            if shown is not value and shown != value:
                changed[name] = shown
        return replace(noun, **changed) if changed else noun
