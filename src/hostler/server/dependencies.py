"""Values that handlers receive by name, beside the parameters of the request itself."""

from typing import NamedTuple

from litestar.di import NamedDependency

from hostler.server.app_state import AppState
from hostler.server.paging import Selection
from hostler.server.tokens import Identity


class Reporter(NamedTuple):
    """An agent that calls, and the app state: one dependency where a whole fleet calls, as each has its price."""

    app_state: AppState
    who: Identity


TheAppState = NamedDependency[AppState]
Who = NamedDependency[Identity]
Wanted = NamedDependency[Selection]
Reports = NamedDependency[Reporter]
