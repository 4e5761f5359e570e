"""Whether the servers that a search depends on are still there, found out without asking Ray.

Ray gives a lost head a minute to come back, in which each call that needs it blocks, and then aborts the program.
"""

import logging
import socket
from collections.abc import Sequence

import psutil

from automl.processes import is_at_work

__all__ = ["Lifeline"]

CONNECT_TIMEOUT_S = 1.0
"""How long the head may take to accept a connection."""
MISSES = 3
"""How many attempts in succession may fail, as when a packet is lost, before the head is taken for gone."""

_log = logging.getLogger(__name__)


class Lifeline:
    """What keeps one connection to a cluster alive.

    Args:
        servers: processes of this machine that have to run.
        head: host and port at which the cluster's head listens; None: it is one of the processes.
    """

    def __init__(self, servers: Sequence[psutil.Process], head: tuple[str, int] | None = None) -> None:
        self._servers, self._head = tuple(servers), head
        self._misses = 0

    def is_whole(self) -> bool:
        """Whether all are there; takes at most `CONNECT_TIMEOUT_S`.

        A head that merely does not answer is missed only at the call number `MISSES`.
        """
        return all(map(_can_answer, self._servers)) and self._is_head_there()

    def _is_head_there(self) -> bool:
        if self._head is None:
            return True
        try:
            socket.create_connection(self._head, timeout=CONNECT_TIMEOUT_S).close()
        except ConnectionRefusedError:
            return False  # its machine is there, and says that nobody listens
        except OSError as error:
            self._misses += 1
            _log.debug("the head of the cluster does not answer attempt=%d: %s", self._misses, error)
            return self._misses < MISSES
        self._misses = 0
        return True


def _can_answer(process: psutil.Process) -> bool:
    """Whether a server is at work, and nobody has stopped it (SIGSTOP): whoever asks it then waits for ever."""
    try:
        return is_at_work(process) and process.status() != psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False
