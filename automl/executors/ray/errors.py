"""The error of a cluster that cannot serve a search."""

from automl.errors import AutomlError

__all__ = ["ClusterError"]


class ClusterError(AutomlError):
    """The cluster cannot be joined, or can never hold what a trial asks for."""

    exit_code = 2
