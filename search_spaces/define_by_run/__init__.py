"""Search spaces from functions that ask for values while they run, as users of Optuna and Keras Tuner write them.

Such a function is run some hundred times when the space is made, and must ask for the same when it is given the same.
"""

from search_spaces.define_by_run.fixed import FixedTrial as FixedTrial
from search_spaces.define_by_run.spaces import traced as traced

__all__ = ["FixedTrial", "traced"]
