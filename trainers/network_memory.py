"""Whether a network can be trained at all on a device, whatever the batch; asked before it has any memory there."""

from trainers.config import TrainConfig
from trainers.device_load import CpuLoad, DeviceLoad
from trainers.errors import NetworkMemoryError
from trainers.estimates import MemoryEstimate, in_words
from trainers.sharing_choice import holds_a_part

__all__ = ["check_network_fits"]


def check_network_fits(alone: MemoryEstimate, load: DeviceLoad, training: TrainConfig, ranks: int) -> None:
    """Refuse a network that does not fit by itself.

    Each rank builds the whole network on the CPU and moves it to its device, or only its part where the ranks share it.

    Args:
        alone: what `estimate_network` returned.
        load: of the device, without the network.
        training: says whether the ranks share the network.
        ranks: how many there are.

    Raises:
        NetworkMemoryError: it cannot fit.
    """
    is_shared = holds_a_part(training, ranks)
    for place in _places_of_the_whole(load, is_shared):
        if alone.weights > place.available_bytes():
            raise _refusal(f"the weights alone need {in_words(alone.weights)}", place, "use a smaller network")
    own, available = -(-alone.peak // ranks) if is_shared else alone.peak, load.available_bytes()
    if own > available:
        share = f" on each of {ranks} ranks" if is_shared else ""
        enough = f"parallel=fsdp or pipeline over {-(-alone.peak // available)} ranks with as much memory each"
        raise _refusal(
            f"the network needs {in_words(own)}{share} without any batch ({alone} in all)",
            load,
            f"use a smaller network, or share it by {enough}",
        )


def _places_of_the_whole(load: DeviceLoad, is_shared: bool) -> tuple[DeviceLoad, ...]:
    """Where all weights are at some time."""
    if load.name == "cpu":
        return (load,)
    return (CpuLoad(),) if is_shared else (load, CpuLoad())


def _refusal(need: str, load: DeviceLoad, advice: str) -> NetworkMemoryError:
    return NetworkMemoryError(
        f"{need}, but the {load.name} has {in_words(load.available_bytes())} left of "
        f"{in_words(load.memory_limit_bytes)}; no smaller batch helps: {advice}"
    )
