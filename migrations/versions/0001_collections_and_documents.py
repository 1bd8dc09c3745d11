"""Collections and documents, with a computed and indexed expiry."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "collections",
        sa.Column("id", serial, primary_key=True),
        sa.Column("name", name, unique=True),
        sa.Column("partition_key", sa.Text, nullable=False),
        sa.Column("default_ttl", sa.BigInteger),
        sa.Column("indexing_mode", sa.Text, nullable=False),
        sa.Column("indexed_paths", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "documents",
        sa.Column("seq", serial, primary_key=True),
        sa.Column("collection_id", serial, sa.ForeignKey("collections.id"), nullable=False),
        sa.Column("partition", name, nullable=False),
        sa.Column("id", name, nullable=False),
        sa.Column("ttl", sa.BigInteger),
        sa.Column("_ts", sa.BigInteger, nullable=False),
        sa.Column(
            "expires_at",
            sa.BigInteger,
            sa.Computed("CASE WHEN ttl > 0 THEN _ts + ttl * 1000 END", persisted=True),
        ),
        sa.Column("etag", sa.Text, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("checksum", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.UniqueConstraint("collection_id", "id", "partition", name="documents_key"),
        postgresql_with={
            "autovacuum_vacuum_scale_factor": "0.02",
            "autovacuum_vacuum_threshold": "1000",
            "autovacuum_analyze_scale_factor": "0.05",
            "toast.autovacuum_vacuum_scale_factor": "0.02",
            "toast.autovacuum_vacuum_threshold": "1000",
        },
    )
    own = sa.text("ttl IS NOT NULL")
    op.create_index(
        "documents_by_expiry",
        "documents",
        ["collection_id", "expires_at", "size", "ttl"],
        sqlite_where=own,
        postgresql_where=own,
    )
    inherited = sa.text("ttl IS NULL")
    op.create_index(
        "documents_by_write",
        "documents",
        ["collection_id", "_ts", "size", "ttl"],
        sqlite_where=inherited,
        postgresql_where=inherited,
    )
    op.create_index("documents_in_order", "documents", ["collection_id", "seq"])


def downgrade() -> None:
    op.drop_table("documents")
    op.drop_table("collections")
