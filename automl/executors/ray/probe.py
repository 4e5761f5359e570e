"""Asks what is at an address before Ray connects to it.

Ray tries for a minute where nobody answers, or the token is wrong, and writes to the terminal meanwhile. So a process
of its own asks, with a time limit, and what it writes is thrown away. It imports nothing of ours.
"""

import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

__all__ = ["Answer", "ask", "split_address"]

CONNECT_TIMEOUT_S = 5.0
"""How long a machine may take to accept a connection."""
ANSWER_TIMEOUT_S = 8.0
"""How long an answer may take, the import of Ray in the process that asks included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was found at an address.

    Attributes:
        kind: `cluster`: the head of a cluster; `token`: one that refuses the token that is set here, or that none is;
            `closed`: nobody listens; `silent`: somebody who does not answer as a head does.
        detail: the system's or Ray's own words.
        has_token: whether a token is set here.
        needs_token: whether the cluster lets nobody in without one, as far as that was asked.
        ray: the cluster's version of Ray; empty where it does not tell.
        python: the cluster's version of Python; likewise.
        is_private: whether a program has started the cluster for itself, and ends it.
        is_here: whether this machine is one of the cluster's.
        hosts: names of its machines.
    """

    kind: Literal["cluster", "token", "closed", "silent"]
    detail: str = ""
    has_token: bool = False
    needs_token: bool = True
    ray: str = ""
    python: str = ""
    is_private: bool = False
    is_here: bool = True
    hosts: tuple[str, ...] = ()


def ask(address: str, *, without_token: bool = False) -> Answer:
    """Ask at HOST:PORT; takes at most the sum of the two time limits, twice where a token is set that is taken.

    Args:
        address: where.
        without_token: ask as one who has no token, whatever is set here.
    """
    try:
        socket.create_connection(split_address(address), timeout=CONNECT_TIMEOUT_S).close()
    except OSError as error:
        return Answer(kind="closed", detail=str(error))
    command = [sys.executable, "-P", str(Path(__file__)), address]
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled"} if without_token else None
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, timeout=ANSWER_TIMEOUT_S, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        return Answer(kind="silent", detail=f"no answer within {ANSWER_TIMEOUT_S:g} s")
    if asked.returncode != 0:
        lines = asked.stderr.strip().splitlines()
        return Answer(kind="silent", detail=lines[-1] if lines else f"exit code {asked.returncode}")
    told = json.loads(asked.stdout.splitlines()[-1])
    answer = Answer(**{**told, "hosts": tuple(told["hosts"])})
    if answer.kind != "cluster" or not answer.has_token:
        return answer
    return replace(answer, needs_token=ask(address, without_token=True).kind != "cluster")


def split_address(address: str) -> tuple[str, int]:
    """Host and port.

    Raises:
        ValueError: it is not HOST:PORT.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536 or "/" in host:
        raise ValueError(f"{address!r} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _answer(address: str) -> Answer:
    """What Ray's own client finds."""
    from ray._private import ray_constants, services
    from ray._raylet import (  # type: ignore[attr-defined]  # its stub has only some of the names
        AuthenticationMode,
        AuthenticationTokenLoader,
        GcsClient,
        get_authentication_mode,
    )
    from ray.exceptions import AuthenticationError

    has_token = False
    if get_authentication_mode() == AuthenticationMode.TOKEN:
        has_token = AuthenticationTokenLoader.instance().has_token(ignore_auth_mode=True)
        if not has_token:  # Ray's client would abort the process
            return Answer(kind="token", detail="RAY_AUTH_MODE=token is set and no token is")
    try:
        client = GcsClient(address=services.canonicalize_bootstrap_address(address))
        nodes = client.get_all_node_info(timeout=ANSWER_TIMEOUT_S)
        stored = client.internal_kv_get(
            b"CLUSTER_METADATA", namespace=ray_constants.KV_NAMESPACE_CLUSTER, timeout=ANSWER_TIMEOUT_S
        )
    except AuthenticationError as error:
        return Answer(kind="token", detail=str(error), has_token=has_token)
    metadata = json.loads(stored or b"{}")
    alive = [node for node in nodes.values() if node.state == node.ALIVE]
    here = set(services.find_node_ids())  # type: ignore[no-untyped-call]  # Ray's own
    return Answer(
        kind="cluster",
        has_token=has_token,
        ray=metadata.get("ray_version", ""),
        python=metadata.get("python_version", ""),
        is_private=metadata.get("ray_init_cluster", False),
        is_here=any(node.node_id.hex() in here for node in alive),
        hosts=tuple(sorted({node.node_manager_hostname for node in alive})),
    )


if __name__ == "__main__":
    print(json.dumps(asdict(_answer(sys.argv[1]))))
