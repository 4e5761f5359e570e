"""What can be searched, how a configuration becomes a network, and what the network costs.

Importing this package loads neither torch nor numpy: networks live in `search_spaces.networks`, counting in
`search_spaces.cost`, and the named spaces in `search_spaces.catalog`.
"""

from search_spaces.configuration import Configuration as Configuration
from search_spaces.configuration import JsonScalar as JsonScalar
from search_spaces.errors import InfeasibleArchitectureError as InfeasibleArchitectureError
from search_spaces.errors import InvalidConfigurationError as InvalidConfigurationError
from search_spaces.errors import InvalidParameterError as InvalidParameterError
from search_spaces.errors import InvalidSpaceError as InvalidSpaceError
from search_spaces.errors import UnknownSearchSpaceError as UnknownSearchSpaceError
from search_spaces.parameters import Categorical as Categorical
from search_spaces.parameters import Float as Float
from search_spaces.parameters import Integer as Integer
from search_spaces.parameters import Parameter as Parameter
from search_spaces.space import SearchSpace as SearchSpace

__all__ = [
    "Categorical",
    "Configuration",
    "Float",
    "InfeasibleArchitectureError",
    "Integer",
    "InvalidConfigurationError",
    "InvalidParameterError",
    "InvalidSpaceError",
    "JsonScalar",
    "Parameter",
    "SearchSpace",
    "UnknownSearchSpaceError",
]
