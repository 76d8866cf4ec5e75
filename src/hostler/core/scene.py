"""What a decision looks at: the recorded fleet, the volatile present, and the moment. Nothing else decides."""

from datetime import datetime

from msgspec import Struct

from hostler.core.fleet import Fleet
from hostler.core.present import Present


class Scene(Struct, frozen=True):
    """The world at one moment, as far as it is known."""

    fleet: Fleet
    present: Present
    now: datetime
