"""A program that runs a toy on a cluster, rests with its warm group until it is told, and runs another one.

Arguments: the cluster's address, and a folder. After the first toy it says that it rests; a line on its standard input
ends the rest. Then it says how the second toy has ended. What it says begins with `SAYS`, as Ray says things, too.
"""

import select
import sys
from pathlib import Path

from automl.executors.base import Failed, Job
from automl.executors.ray.executor import RayExecutor
from automl.executors.ray.placement import Request
from tests.contracts.executor_contract import end_of, run_to_end, toy_task

__all__ = ["SAYS"]

SAYS = "the driver says: "


def main(address: str, folder: Path) -> None:
    request = Request(ranks=2, cpus=2)
    with RayExecutor("tests.helpers.toy:ToyTrainer", "digits", request=request, concurrency=1, address=address) as ray:
        run(ray, folder / "first")
        print(f"{SAYS}resting", flush=True)
        while not select.select([sys.stdin], [], [], 0.0)[0]:
            ray.events(0.2)
        print(f"{SAYS}{run(ray, folder / 'second')}", flush=True)


def run(executor: RayExecutor, folder: Path) -> str:
    job: Job = executor.submit(toy_task(folder))
    end = end_of(run_to_end(executor, job), job)
    return str(end.failure) if isinstance(end, Failed) else "completed"


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
