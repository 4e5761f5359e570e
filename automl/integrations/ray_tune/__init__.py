"""Ray Tune programs join a study: our samplers and pruners, and one database with true states and epochs."""

from automl.integrations.ray_tune.scheduler import StudyScheduler as StudyScheduler
from automl.integrations.ray_tune.searcher import StudySearcher as StudySearcher
from automl.integrations.ray_tune.study import TuneStudy as TuneStudy

__all__ = ["StudyScheduler", "StudySearcher", "TuneStudy"]
