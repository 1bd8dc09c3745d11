"""Which store it is: a server has many names, and a URL many spellings."""

from datetime import datetime
from typing import NamedTuple

# None of it needs more rights than any role has.
IDENTITY = """
SELECT system_identifier, (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
       to_regclass(%s)::oid::bigint, pg_postmaster_start_time(), pg_is_in_recovery()
FROM pg_control_system()
"""


class Identity(NamedTuple):
    """A row of `IDENTITY`."""

    cluster: int
    """The same for a server, its standbys, and whatever was restored from its backups."""
    database: int
    documents: int
    started: datetime
    """When the server was: what tells it from one that was restored from its backup."""
    standby: bool

    def is_of(self, other: "Identity") -> bool:
        """Whether it is the same store, or its standby."""
        # Not by an advisory lock that one takes and the other sees: a standby does not.
        alike = self[:3] == other[:3]
        return alike and (self.started == other.started or self.standby or other.standby)
