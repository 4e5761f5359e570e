"""Whether a network can be trained at all on a device, whatever the batch; asked before it has any memory there."""

from trainers.config import TrainConfig
from trainers.device_load import CpuLoad, DeviceLoad
from trainers.errors import NetworkMemoryError
from trainers.estimates import MemoryEstimate, in_words, or_fewer_ranks, room_in_words
from trainers.sharing_choice import holds_a_part

__all__ = ["check_network_fits"]


def check_network_fits(
    alone: MemoryEstimate, load: DeviceLoad, training: TrainConfig, ranks: int, *, on_this_machine: int = 1
) -> None:
    """Refuse a network that does not fit by itself.

    Each rank builds the whole network on the CPU and moves it to its device, or only its part where the ranks share it.
    The ranks of one machine do so at the same time, in the same memory.

    Args:
        alone: what `estimate_network` returned.
        load: of the device, without the network.
        training: says whether the ranks share the network.
        ranks: how many there are.
        on_this_machine: how many of them are on this machine.

    Raises:
        NetworkMemoryError: it cannot fit.
    """
    is_shared = holds_a_part(training, ranks)
    for place in _places_of_the_whole(load, is_shared, on_this_machine):
        available = place.available_bytes()
        if alone.weights > available:
            need = f"the weights alone need {in_words(alone.weights)}"
            raise _refusal(need, place, available, f"use a smaller network{or_fewer_ranks(place)}")
    own, available = -(-alone.peak // ranks) if is_shared else alone.peak, load.available_bytes()
    if own > available:
        share = f" on each of {ranks} ranks" if is_shared else ""
        need = f"the network needs {in_words(own)}{share} without any batch ({alone} in all)"
        advice = "use a smaller network" + ("" if is_shared else or_fewer_ranks(load))
        brings_memory = load.name != "cpu" or ranks > on_this_machine  # whether another rank does
        if brings_memory and available > 0:
            enough = f"{-(-alone.peak // available)} ranks with as much memory each"
            advice += f", or share it by parallel=fsdp or pipeline over {enough}"
        raise _refusal(need, load, available, advice)


def _places_of_the_whole(load: DeviceLoad, is_shared: bool, on_this_machine: int) -> tuple[DeviceLoad, ...]:
    """Where all weights are at some time."""
    if load.name == "cpu":
        return (load,)
    host = CpuLoad(on_this_machine)
    return (host,) if is_shared else (load, host)


def _refusal(need: str, load: DeviceLoad, available: int, advice: str) -> NetworkMemoryError:
    return NetworkMemoryError(f"{need}, but {room_in_words(load, available)}; no smaller batch helps: {advice}")
