"""Which revision of the schema an index has, and bringing it to the newest."""

from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, insert, inspect, select

from indexer.errors import StoreError
from indexer.store.tables import META, METADATA, REVISIONS

_MIGRATIONS = Path(__file__).parent / "migrations"
# Alembic's own table, declared as Alembic makes it, so that questions need no Alembic.
_REVISION = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def revision_of(connection: Connection) -> str | None:
    """Give the revision of an index, None for a database without one."""
    found = inspect(connection)
    if found.has_table(_REVISION.name):
        return connection.execute(select(_REVISION.c.version_num)).scalar()
    if found.has_table(META.name):  # version 1 kept its number among what the index is of
        return connection.execute(select(META.c.value).where(META.c.name == "schema_version")).scalar()
    return None


def is_known(revision: str | None) -> bool:
    """Tell whether this program can bring an index of a revision to the newest; None stands for no index."""
    return revision is None or revision in REVISIONS


def is_newest(revision: str | None) -> bool:
    """Tell whether an index needs no upgrade."""
    return revision == REVISIONS[-1]


def check(revision: str | None, label: str) -> None:
    """Raise StoreError with the remedy where questions cannot be answered from an index of a revision."""
    if is_newest(revision):
        return
    if revision is None:
        raise StoreError(f"There is no index at {label}: build it with `counterfoil index run`.")
    if is_known(revision):
        raise StoreError(
            f"The index at {label} has schema revision {revision}, this program reads {REVISIONS[-1]}: "
            "run `counterfoil index run` once, which upgrades it."
        )
    raise StoreError(
        f"The index at {label} has schema revision {revision}, which this program does not know: "
        "install the newer counterfoil that wrote it, or name another COUNTERFOIL_DATABASE."
    )


def upgrade(connection: Connection) -> None:
    """Bring a database to the newest revision, within the transaction of `connection`.

    An empty one gets the tables as they are declared, which a test holds equal to what the revisions lead to.
    """
    found = revision_of(connection)
    if found is None:
        METADATA.create_all(connection, checkfirst=False)  # tables that are there already are somebody else's
        _REVISION.create(connection)
        connection.execute(insert(_REVISION).values(version_num=REVISIONS[-1]))
    elif not is_newest(found):
        _migrate(connection, found)


def _migrate(connection: Connection, found: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    if found == REVISIONS[0]:
        command.stamp(config, found)
    command.upgrade(config, "head")
