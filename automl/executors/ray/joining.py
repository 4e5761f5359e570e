"""Which existing cluster a search joins, and the advice where that is not possible."""

import platform
import time
from collections.abc import Sequence

import psutil
import ray
from ray._private import services, utils, worker

from automl.env import known_ray_address
from automl.executors.ray.errors import ClusterError
from automl.executors.ray.lifeline import Lifeline
from automl.executors.ray.probe import Answer, ask, split_address

__all__ = ["address_to_join", "lifeline_of_joined", "why_not"]

LOOK_S = 10.0
"""How long to look for the cluster that `auto` means."""


def address_to_join(given: str) -> str:
    """The address of a cluster that answers, takes our token and has our versions.

    Args:
        given: HOST:PORT, or `auto` for the cluster of this machine.

    Raises:
        ClusterError: there is none.
    """
    if given == "auto":
        return _cluster_of_this_machine()
    if given.startswith("ray://"):
        raise ClusterError(
            f"--ray-address {given}: a search cannot go through a Ray Client server; give HOST:PORT of the head, port "
            "6379 unless `ray start --head --port` said another"
        )
    try:
        split_address(given)
    except ValueError as error:
        raise ClusterError(f"--ray-address {error} or auto") from error
    reason = why_not(given, ask(given))
    if reason is not None:
        raise ClusterError(reason)
    return given


def lifeline_of_joined() -> Lifeline:
    """What the cluster depends on to which this process is connected, whoever has started it."""
    node = worker._global_node
    assert node is not None
    socket = node.raylet_socket_name
    servers = [process for process in psutil.process_iter(["name", "cmdline"]) if _serves(process, socket)]
    return Lifeline(servers, split_address(node.gcs_address))


def _serves(process: psutil.Process, socket: str) -> bool:
    """Whether it is the raylet at this socket; other processes name it as well, and other sockets begin like it."""
    words = process.info["cmdline"] or ()
    return process.info["name"] == "raylet" and f"--raylet_socket_name={socket}" in words


def why_not(address: str, answer: Answer) -> str | None:
    """Why the cluster at an address cannot be joined, with what to do; None: it can."""
    match answer.kind:
        case "closed":
            return (
                f"no Ray cluster at {address}: {answer.detail}; start one there with "
                f"`ray start --head --port {split_address(address)[1]}`, or leave out --ray-address for a private one"
            )
        case "silent":
            return (
                f"something listens at {address} but does not answer as the head of a Ray cluster ({answer.detail}); "
                "give the port of `ray start --head` (6379 unless --port says another), not that of the dashboard or "
                "of Ray Client"
            )
        case "token":
            return _about_the_token(address, answer)
    return _other_versions(address, answer) or _not_a_machine_of_it(address, answer) or _in_vain(address, answer)


def _other_versions(address: str, answer: Answer) -> str | None:
    try:
        utils.check_version_info({"ray_version": answer.ray, "python_version": answer.python}, "here")
    except RuntimeError:
        return (
            f"the cluster at {address} runs Ray {answer.ray or 'unknown'} on Python {answer.python or 'unknown'}, and "
            f"this machine Ray {ray.__version__} on Python {platform.python_version()}; all machines need the same: "
            "install them here, or start the cluster with these"
        )
    return None


def _not_a_machine_of_it(address: str, answer: Answer) -> str | None:
    if answer.is_here:
        return None
    return (
        f"this machine is none of the cluster at {address} ({', '.join(answer.hosts) or 'no machine is alive'}); add "
        f"it with `ray start --address {address}` (--num-cpus 0: it runs no trials), or search from one of those"
    )


def _in_vain(address: str, answer: Answer) -> str | None:
    if answer.needs_token or not answer.has_token:
        return None
    return (
        f"the cluster at {address} was started without a token, and with the one that is set here its workers cannot "
        "talk to this program: set RAY_AUTH_MODE=disabled, or start the cluster with the token"
    )


def _about_the_token(address: str, answer: Answer) -> str:
    found = "the token that is set here is another one" if answer.has_token else "no token is set here"
    if answer.detail.startswith("RAY_AUTH_MODE"):
        found = answer.detail
    return (
        f"the cluster at {address} was not asked in with a token that it takes: {found}; set RAY_AUTH_MODE=token and "
        "RAY_AUTH_TOKEN (or RAY_AUTH_TOKEN_PATH, or ~/.ray/auth_token) to the token that the cluster was started with"
    )


def _cluster_of_this_machine() -> str:
    """What `auto` means: the noted cluster, or else one whose head runs here and that nobody has for himself.

    Raises:
        ClusterError: there is none, or none can be joined.
    """
    reasons, deadline = [], time.monotonic() + LOOK_S
    for address in _candidates():
        if time.monotonic() > deadline:
            break
        answer = ask(address)
        if answer.kind == "cluster" and answer.is_private:
            continue
        reason = why_not(address, answer)
        if reason is None:
            return address
        reasons.append(reason)
    if not reasons:
        raise ClusterError(
            "--ray-address auto: no Ray cluster was found on this machine; start one with `ray start --head`, join one "
            "with `ray start --address HOST:PORT`, or leave out --ray-address for a private one"
        )
    raise ClusterError("\n".join(["--ray-address auto: no cluster can be joined:", *(f"  - {r}" for r in reasons)]))


def _candidates() -> Sequence[str]:
    noted = known_ray_address()
    if noted is not None:
        return [noted]
    return sorted(services.find_gcs_addresses())  # type: ignore[no-untyped-call]  # Ray's own
