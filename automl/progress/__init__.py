"""How a search is shown while it runs. The views only show a state; nothing here decides anything."""

from automl.progress.observer import ProgressObserver as ProgressObserver
from automl.progress.state import ProgressState as ProgressState
from automl.progress.state import RunningTrial as RunningTrial
from automl.progress.state import time_left_s as time_left_s
from automl.progress.views import LiveProgress as LiveProgress
from automl.progress.views import PlainProgress as PlainProgress
from automl.progress.views import ProgressView as ProgressView
from automl.progress.views import progress_for as progress_for
