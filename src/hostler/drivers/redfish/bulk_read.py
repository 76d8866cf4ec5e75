"""Reads much of a BMC at once. What cannot be read is said, never left out."""

from collections.abc import Callable, Iterable

from hostler.core.state.model import Part
from hostler.drivers.redfish import wire, wire_parts
from hostler.drivers.redfish.client import BmcFailureError, NotOfferedError, RedfishClient
from hostler.drivers.redfish.tolerant_json import Document, WireError, document

MAX_GAPS = 32
_ReadPart = Callable[[Document], Part | None]


class Survey:
    """Reads on where a resource is missing or broken, and notes it; only silence of the BMC ends it."""

    def __init__(self, client: RedfishClient) -> None:
        self.gaps: list[str] = []
        self.faults = 0
        self.broken = False
        self.client = client
        self.wholes: dict[str, Document] = {}
        self._read: dict[str, Document] = {}
        self._lists: dict[str, tuple[list[Document], int]] = {}

    async def one(self, reference: str) -> Document:
        """The object behind a link, read once per survey; an empty one where it cannot be read."""
        if reference not in self._read:
            try:
                self._read[reference] = document(await self.client.get(reference), reference)
            except (BmcFailureError, WireError, NotOfferedError) as error:
                self._note(str(error), broken=True)
                self._read[reference] = {}
        return self._read[reference]

    def seen(self, reference: str, doc: Document) -> None:
        """Remember what was read of this already."""
        self._read[reference] = doc

    async def many(self, reference: str, what: str) -> list[Document]:
        """The members behind a link to a collection, read once per survey; none where it is missing or broken."""
        if reference in self._lists:
            found, faults = self._lists[reference]
            self.faults += faults
            return found
        before = self.faults
        found = await self._listed(reference, what)
        if reference:
            self._lists[reference] = found, self.faults - before
        return found

    async def listed(self, reference: str, what: str) -> list[str]:
        """The paths of a collection's members, without reading them; none where it is missing or broken."""
        try:
            return await self.client.member_paths(reference)
        except NotOfferedError as error:
            self._note(str(error))
        except (BmcFailureError, WireError) as error:
            self._note(f"{what}: {error}", broken=True)
        return []

    async def _listed(self, reference: str, what: str) -> list[Document]:
        if not reference:
            self._note(f"the BMC offers no {what}")
            return []
        try:
            found = await self.client.collection(reference)
        except NotOfferedError as error:
            self._note(str(error))
            return []
        except (BmcFailureError, WireError) as error:
            self._note(str(error), broken=True)
            return []
        for doc in found:
            if len(doc) <= 1:
                self._note(f"{what} {wire_parts.slot_of(doc)} could not be read", broken=True)
        return [doc for doc in found if len(doc) > 1]

    def parts(self, what: str, docs: Iterable[Document], read: _ReadPart) -> list[Part]:
        """Members as parts; one that says nothing of itself is noted."""
        found = []
        for doc in docs:
            part = read(doc)
            if part and (part.serial or part.slot):
                found.append(part)
                if not part.serial:
                    self._note(f"{what} {part.slot} shows no serial number")
            elif doc and not wire.absent(doc):
                self.faults += 1
                self._note(f"{what} {wire_parts.slot_of(doc)} shows no serial number")
        return found

    def pass_over(self, gap: str) -> None:
        """Say that something was there and was not read."""
        self._note(gap, broken=True)

    def _note(self, gap: str, broken: bool = False) -> None:
        self.broken = self.broken or broken
        self.faults += broken
        if len(self.gaps) < MAX_GAPS:
            self.gaps.append(gap)
