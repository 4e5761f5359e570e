"""DARTS cells as the tests write and draw them."""

from hypothesis import strategies as st

from search_spaces.darts_genotype import NODES, OPERATIONS, DartsCell, DartsNode, source_pairs
from search_spaces.darts_text import parse_genotype

PUBLISHED = (
    "Genotype(normal=[('sep_conv_3x3', 0), ('sep_conv_3x3', 1), ('sep_conv_3x3', 0), ('sep_conv_3x3', 1), "
    "('sep_conv_3x3', 1), ('skip_connect', 0), ('skip_connect', 0), ('dil_conv_3x3', 2)], "
    "normal_concat=[2, 3, 4, 5], reduce=[('max_pool_3x3', 0), ('max_pool_3x3', 1), ('skip_connect', 2), "
    "('max_pool_3x3', 1), ('max_pool_3x3', 0), ('skip_connect', 2), ('skip_connect', 2), ('max_pool_3x3', 1)], "
    "reduce_concat=[2, 3, 4, 5])"
)
DARTS_V2 = parse_genotype(PUBLISHED)


def _node(number: int) -> st.SearchStrategy[DartsNode]:
    operation = st.sampled_from(OPERATIONS)
    pairs = [(int(pair[0]), int(pair[2])) for pair in source_pairs(number)]
    return st.builds(DartsNode, st.sampled_from(pairs), st.tuples(operation, operation))


ANY_DARTS_CELL = st.tuples(*(_node(number) for number in NODES)).map(DartsCell)
