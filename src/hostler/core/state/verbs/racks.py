"""Racks as one: brought up with recorded steps, certified; their assets named anew after a swap."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.verbs.facts import Name, Permission, Target, Verb, VerbFacts


class RackBringUp(Verb, frozen=True):
    """Bring a rack up: power shelves, coolant, leak detectors, switch trays with their firmware, compute trays."""

    facts: ClassVar = VerbFacts(Permission.enrol, Target.rack, command="rack bring-up")
    sku: Annotated[
        Name, Meta(description="The SKU whose rack manifest holds; needed while no node of it stands there.")
    ] = ""


class RackCallOff(Verb, frozen=True):
    """End a rack's bring-up where it stands; what is under way on an asset is finished first."""

    facts: ClassVar = VerbFacts(Permission.enrol, Target.rack, command="rack call-off", easing=True)


class RackCertify(Verb, frozen=True):
    """Certify a rack as a whole, with what each of its parts shows now as evidence."""

    facts: ClassVar = VerbFacts(Permission.work, Target.rack, command="rack certify")


class AssetSound(Verb, frozen=True):
    """Say that an asset which leaked is sound again; a switch tray that was switched off for it is powered on."""

    facts: ClassVar = VerbFacts(Permission.work, Target.asset, command="asset sound")


class RenewAssetCertificate(Verb, frozen=True):
    """Have the site's authority give the BMC of a shelf, coolant unit or switch tray a new certificate now."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.asset, command="asset renew-certificate")


class RenewAssetLogin(Verb, frozen=True):
    """Give the BMC of a shelf, coolant unit, switch tray or PDU a new password of its own now."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.asset, command="asset renew-login")
    anew: Annotated[
        bool, Meta(description="Wrong passwords count from none again: you know that it has the right one.")
    ] = False


class RebindAsset(Verb, frozen=True):
    """Give an asset another name: a swapped tray's serial number, a replaced BMC's address."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.asset, command="asset rebind")
    kind: Annotated[Name, Meta(description="Kind of name: serial, bmc, bmc_certificate or nvos.")]
    value: Annotated[Name, Meta(description="The new name; for bmc and nvos an https address.")]
