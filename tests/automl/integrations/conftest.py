import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # read when Ray is imported
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

Joined = Callable[..., Any]
Tuned = Callable[..., Any]


@pytest.fixture(scope="session")
def tune_cluster() -> Iterator[None]:
    """A private cluster of four logical CPUs, or the one that other tests of this session have started."""
    import ray

    is_ours = not ray.is_initialized()
    if is_ours:
        ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield
    if is_ours:
        ray.shutdown()


@pytest.fixture
def joined(storage: str) -> Joined:
    """Join the toy study; every setting can be given."""
    from automl.integrations.ray_tune import TuneStudy

    def join(**settings: Any) -> TuneStudy:
        usual = {
            "storage": storage, "space": "tests.helpers.toy", "metric": "loss", "mode": "min", "epochs": 4,
            "sampler": "random", "pruner": "none", "study": "toy",
        }  # fmt: skip
        return TuneStudy(**{**usual, **settings})

    return join


@pytest.fixture
def tuned(tune_cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tuned:
    """Run a Tune program on a joined study, one trial after the other; every setting of Tune can be given."""
    monkeypatch.setenv("RAY_AIR_NEW_OUTPUT", "0")
    monkeypatch.setenv("RAY_CHDIR_TO_TRIAL_DIR", "0")
    monkeypatch.setenv("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")  # they leave files of interrupted trials open

    from ray import tune

    from automl.integrations.ray_tune import StudyScheduler, StudySearcher, TuneStudy

    def run(study: TuneStudy, training: Any, *, config: Any = None, run: Any = None, **tuning: Any) -> tune.ResultGrid:
        usual = {
            "search_alg": StudySearcher(study), "scheduler": StudyScheduler(study), "num_samples": 3,
            "max_concurrent_trials": 1, "reuse_actors": True,
        }  # fmt: skip
        tuner = tune.Tuner(
            training,
            param_space=config,
            tune_config=tune.TuneConfig(**{**usual, **tuning}),
            run_config=tune.RunConfig(**{"storage_path": str(tmp_path / "tune"), "verbose": 0, **(run or {})}),
        )
        return tuner.fit()

    return run
