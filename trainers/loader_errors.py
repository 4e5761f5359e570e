"""What an error of a DataLoader's worker means: its dataset asked for CUDA, or the worker itself is gone.

A worker is a fork of the training process, and CUDA cannot be used in a fork. Torch's own words then advise another
start method; what helps is to leave the dataset's tensors on the CPU.
"""

import re
from types import TracebackType
from typing import Literal

from trainers.errors import causes

__all__ = ["cuda_in_item", "cuda_in_loader_worker", "end_of_loader_worker"]

_FROM_A_WORKER = "in DataLoader worker process"
_CUDA_IS_NOT_THERE = (
    "re-initialize cuda in forked subprocess",
    "no nvidia driver",
    "not compiled with cuda",
    "no cuda gpus are available",
    "cuda error: initialization error",
)
"""What torch says, in lower case, when CUDA is asked for where it cannot be used."""
_WHAT_TO_DO = "return CPU tensors, and move to the device in the training step"
_IS_KILLED = re.compile(r"DataLoader worker \(pid \d+\) is killed by signal: Killed")
_IS_GONE = re.compile(r"DataLoader worker \(pid\(s\) [\d, ]+\) exited unexpectedly")
"""What torch says of a worker that was ended by SIGKILL, where it can tell, and of one that it does not find any more.

It can tell in the main thread of a process only.
"""


def cuda_in_loader_worker(error: BaseException) -> str | None:
    """Advice for an error that a dataset raised in a DataLoader's worker because it asked for CUDA there.

    Args:
        error: as it came out of the training; what it was raised from is looked at, too.

    Returns:
        One sentence that names the dataset's class, or its file and line where the traceback has no variables any
        more; None: the error is another one.
    """
    for link in causes(error):
        if _is_from_a_worker(str(link)):
            said = _first_sentence(str(link))
            return (
                f"{_dataset_of(link)} asks for CUDA in a worker process of its DataLoader, where it cannot be used "
                f"({said}); {_WHAT_TO_DO}"
            )
    return None


def cuda_in_item(error: BaseException, dataset: object) -> str | None:
    """Advice for an error that a dataset raised in this process because it asked for CUDA, which is not there.

    Args:
        error: as the dataset raised it.
        dataset: whose item was read.

    Returns:
        One sentence that names the dataset's class; None: the error is another one.
    """
    if not _says_so(str(error)):
        return None
    return (
        f"the dataset {type(_unwrapped(dataset)).__name__} asks for CUDA, which cannot be used here "
        f"({_first_sentence(str(error))}); {_WHAT_TO_DO}"
    )


def end_of_loader_worker(error: BaseException) -> Literal["killed", "gone"] | None:
    """How a DataLoader's worker has ended that took the training with it.

    Args:
        error: as it came out of the training; what it was raised from is looked at, too.

    Returns:
        `killed`: from outside, by SIGKILL; `gone`: somehow; None: the error is another one.
    """
    texts = [str(link) for link in causes(error)]
    if any(map(_IS_KILLED.search, texts)):
        return "killed"
    return "gone" if any(map(_IS_GONE.search, texts)) else None


def _is_from_a_worker(text: str) -> bool:
    return _FROM_A_WORKER in text and _says_so(text)


def _says_so(text: str) -> bool:
    return any(sign in text.lower() for sign in _CUDA_IS_NOT_THERE)


def _dataset_of(error: BaseException) -> str:
    """The class of the dataset, which the loader's iterator holds while the error passes through it."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        dataset = getattr(trace.tb_frame.f_locals.get("self"), "_dataset", None)
        if dataset is not None:
            return f"the dataset {type(_unwrapped(dataset)).__name__}"
        trace = trace.tb_next
    return _place_of(str(error))


def _unwrapped(dataset: object) -> object:
    """The person's own dataset inside of one of torch, such as a Subset, or of ours."""
    while type(dataset).__module__.startswith(("torch.", "trainers.feeding.")) and hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    return dataset


def _place_of(text: str) -> str:
    """The last place in the worker's traceback that is outside of torch."""
    places = re.findall(r'File "([^"]+)", line (\d+)', text)
    own = [place for place in places if "/torch/" not in place[0]]
    return f"the dataset's code at {own[-1][0]}, line {own[-1][1]}," if own else "the dataset"


def _first_sentence(text: str) -> str:
    """What the original error said, without its traceback and without its advice."""
    line = next(line for line in reversed(text.splitlines()) if _says_so(line))
    return line.strip().partition(". ")[0].rstrip(".")
