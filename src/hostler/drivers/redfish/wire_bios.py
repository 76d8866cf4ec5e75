"""A Bios resource and its settings object → what is set, what waits, and what is to be sent, pure."""

from msgspec import Struct

from hostler.drivers.redfish.tolerant_json import Document, child, link, printable, strings, text

ON_RESET = "OnReset"
_OVER = ("completed", "failed", "deleted", "canceled", "cancelled", "exception", "removed")
"""Beginnings of the words for a job that is over, Dell's ("CompletedWithErrors") and DMTF's."""


class BiosSettings(Struct, frozen=True):
    """BIOS attributes as they are, and as they wait in the settings object; `settings` is "" where there is none."""

    path: str
    etag: str
    attributes: Document
    settings: str = ""
    settings_etag: str = ""
    waiting: Document = {}
    apply_times: tuple[str, ...] = ()

    def shown(self, name: str) -> str | None:
        """An attribute's value as text, None where it is not listed."""
        return shown(self.attributes.get(name))

    def open(self, wanted: dict[str, str]) -> dict[str, str]:
        """Wanted values that are not set, or that a change which waits would undo."""
        return {
            name: value
            for name, value in wanted.items()
            if self.shown(name) != value or shown(self.waiting.get(name), value) != value
        }

    def waits_for(self, wanted: dict[str, str]) -> bool:
        """Whether all of these wait."""
        return all(shown(self.waiting.get(name)) == value for name, value in wanted.items())

    def differences(self, wanted: dict[str, str]) -> str:
        """Text on each value that is not set: attribute, expected, found, and whether it still waits."""
        return "; ".join(
            f"{name}: expected {value}, found {self._found(name)}{self._held(name, value)}"
            for name, value in wanted.items()
            if self.shown(name) != value
        )

    def _found(self, name: str) -> str:
        found = self.shown(name)
        return found if found is not None else "nothing: this BIOS lists no such attribute"

    def _held(self, name: str, value: str) -> str:
        held = shown(self.waiting.get(name)) == value
        return f", and {value} still waits in {printable(self.settings)}" if held else ""


def shown(value: object, otherwise: str | None = None) -> str | None:
    """An attribute's value as a person writes it, as `wire_hardware` reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    return printable(str(value)) if isinstance(value, str | int | float) else otherwise


def settings_of(doc: Document, path: str) -> BiosSettings:
    """Attributes that a Bios resource shows; its settings object is read by itself."""
    held = child(doc, "@Redfish.Settings")
    return BiosSettings(
        path,
        text(doc, "@odata.etag"),
        child(doc, "Attributes"),
        settings=link(held, "SettingsObject"),
        apply_times=strings(held, "SupportedApplyTimes"),
    )


def as_the_bios_has_it(now: object, wanted: str) -> object | None:
    """The value in the type that the attribute has; None where it cannot be of that type."""
    if isinstance(now, bool):
        return {"true": True, "false": False}.get(wanted)
    if isinstance(now, int):
        return int(wanted) if wanted.removeprefix("-").isdecimal() else None
    return wanted if isinstance(now, str) else None


def is_open_job(doc: Document) -> bool:
    """Whether a job configures the BIOS and is not over."""
    return text(doc, "JobType") == "BIOSConfiguration" and not text(doc, "JobState").lower().startswith(_OVER)
