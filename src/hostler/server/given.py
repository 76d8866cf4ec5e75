"""What handlers are given by name, beside the parameters of the request itself."""

from litestar.di import NamedDependency

from hostler.server.paging import Selection
from hostler.server.room import Room
from hostler.server.tokens import Identity

TheRoom = NamedDependency[Room]
Who = NamedDependency[Identity]
Wanted = NamedDependency[Selection]
