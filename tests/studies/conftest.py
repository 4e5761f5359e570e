from tests.helpers.mariadb import mariadb_server, mariadb_url
from tests.helpers.postgres import postgres_server, postgres_url

__all__ = ["mariadb_server", "mariadb_url", "postgres_server", "postgres_url"]
