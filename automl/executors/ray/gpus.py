"""Which of torch's GPUs is the one that Ray has reserved for a process."""

__all__ = ["gpu_index"]


def gpu_index(assigned: str, setting: str | None) -> int:
    """The number under which torch knows a GPU.

    Ray shows a process only the GPUs that it has reserved for it, so that torch counts them from 0, unless
    RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES keeps it from doing so.

    Args:
        assigned: Ray's name of the GPU: its number on the machine, or its UUID.
        setting: CUDA_VISIBLE_DEVICES of the process; None where it is not set, and torch sees all GPUs.

    Raises:
        ValueError: the setting does not show that GPU.
    """
    if setting is None:
        return int(assigned)
    visible = [name.strip() for name in setting.split(",")]
    if assigned not in visible:
        raise ValueError(f"Ray has reserved GPU {assigned}, which CUDA_VISIBLE_DEVICES={setting} does not show")
    return visible.index(assigned)
