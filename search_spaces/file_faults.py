"""All that is wrong with the parameters of a Python file that defines a space, though one fault ends its import.

The file is run once more with each of its parameters made by itself.
"""

import ast
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from search_spaces.errors import InvalidParameterError
from search_spaces.own_code import OWN_CODE_ERRORS
from search_spaces.parameters import Categorical

__all__ = ["parameter_faults"]

_KINDS = ("Float", "Integer", "Categorical")
_MAKE = "_automl_make"


def parameter_faults(path: Path) -> tuple[str, ...]:
    """Return why parameters of a file cannot be, a sentence each, with its line; empty: the file has another fault.

    Args:
        path: of a file whose import has failed; its code is run.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        tree = _Marked().visit(ast.parse(path.read_bytes(), str(path)))
    except (SyntaxError, ValueError):
        return ()
    faults: dict[int, str] = {}

    def make(line: int, parameter: Callable[[], Any]) -> Any:
        try:
            return parameter()
        except InvalidParameterError as error:
            faults[line] = f"line {line}: {error}"
            return Categorical(choices=("faulty",))  # stands in for it, so that those after it are made, too

    module = types.ModuleType(path.stem)
    module.__dict__.update({"__file__": str(path), _MAKE: make})
    try:
        exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), module.__dict__)
    except OWN_CODE_ERRORS:  # it has failed before, and after faults more of them follow
        return tuple(faults[line] for line in sorted(faults))
    return tuple(faults[line] for line in sorted(faults))


class _Marked(ast.NodeTransformer):
    """Hands the making of each parameter, with its line, to a function."""

    def visit_Call(self, node: ast.Call) -> ast.AST:  # the name that ast looks for
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        if name not in _KINDS:
            return node
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        arguments = [ast.Constant(node.lineno), ast.Lambda(args=nothing, body=node)]
        return ast.copy_location(ast.Call(func=ast.Name(_MAKE, ast.Load()), args=arguments, keywords=[]), node)
