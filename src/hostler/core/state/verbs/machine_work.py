"""Work of a provisioner (an Ironic) or a provider on a machine."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.verbs.facts import Heading, Permission, Target, Verb, VerbFacts


class Inspect(Verb, frozen=True):
    """Have Ironic inspect a node that serves nobody."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, command="ironic inspect")


class Deploy(Verb, frozen=True):
    """Have Ironic write an image to a node that serves nobody, and boot it."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, command="ironic deploy")
    image: Annotated[str, Meta(description="Address of the image, http, https or file, as Ironic reaches it.")]
    checksum: Annotated[str, Meta(description="SHA-256 or SHA-512 of the image, in hex.")]
    configdrive: Annotated[str, Meta(description="Address of a config drive, as Ironic reaches it.")] = ""


class Clean(Verb, frozen=True):
    """Have Ironic clean a node that serves nobody, by steps of its own."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, command="ironic clean")
    steps: Annotated[
        str,
        Meta(description="Steps in their order, INTERFACE.STEP separated by commas: deploy.erase_devices_metadata."),
    ]


class ReplaceInstance(Verb, frozen=True):
    """Have the provider that owns it give another instance for a node that is sent to its vendor."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.node, Heading.repair)
