"""Other programs that treat nodes of a cluster."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hostler.core.state.verbs.facts import Name, Permission, Target, Verb, VerbFacts

RemediatorName = Annotated[Name, Meta(description="The program's name; see `hostler doctor`.")]


class ReportRemediators(Verb, frozen=True):
    """Tell which programs treat nodes of a cluster; a served cell says what it finds."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.cluster)
    remediators: str = ""


class AcceptRemediator(Verb, frozen=True):
    """Let Hostler act beside this program of the cluster."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.cluster, command="doctor accept")
    remediator: RemediatorName


class WithdrawRemediator(Verb, frozen=True):
    """Let Hostler act beside this program of the cluster no longer."""

    facts: ClassVar = VerbFacts(Permission.operate, Target.cluster, command="doctor withdraw")
    remediator: RemediatorName
