import pytest
from hypothesis import given

from search_spaces.darts_genotype import DartsCell, DartsGenotype, DartsNode
from search_spaces.darts_text import genotype_text, parse_genotype
from tests.search_spaces.darts import ANY_DARTS_CELL, DARTS_V2, PUBLISHED


def test_parse_reads_the_published_cells() -> None:
    assert DARTS_V2.normal.nodes[2] == DartsNode((0, 1), ("skip", "sep_conv_3x3"))
    assert DARTS_V2.normal.nodes[3] == DartsNode((0, 2), ("skip", "dil_conv_3x3"))
    assert DARTS_V2.reduction.nodes[1] == DartsNode((1, 2), ("max_pool_3x3", "skip"))
    assert parse_genotype(PUBLISHED.replace("[2, 3, 4, 5]", "range(2, 6)")) == DARTS_V2


@given(ANY_DARTS_CELL, ANY_DARTS_CELL)
def test_text_round_trips(normal: DartsCell, reduction: DartsCell) -> None:
    genotype = DartsGenotype(normal=normal, reduction=reduction)
    assert parse_genotype(genotype_text(genotype)) == genotype


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "form: Genotype"),
        ("Genotype(normal=[('skip_connect', 0)], reduce=[])", "give 8 pairs"),
        (PUBLISHED.replace("[2, 3, 4, 5]", "[3, 4, 5]"), r"normal_concat=\[3, 4, 5\]; .*reduce_concat"),
        (PUBLISHED.replace("('dil_conv_3x3', 2)", "('dil_conv_3x3', 5)"), "node 5 reads 0 and 5"),
        (PUBLISHED.replace("('dil_conv_3x3', 2)", "('dil_conv_3x3', 0)"), "node 5 reads 0 and 0"),
        (PUBLISHED.replace("dil_conv_3x3", "dil_conv_3x"), r"did you mean 'dil_conv_3x3'\?"),
        (PUBLISHED.replace("Genotype(normal", "Genotype(print(1), normal"), "no call with named arguments"),
        (PUBLISHED.replace("[2, 3, 4, 5]", "open('x')"), "form: Genotype"),
        (PUBLISHED.replace("[2, 3, 4, 5]", "range('x')"), "form: Genotype"),
    ],
    ids=["empty", "short", "concat", "later", "same", "operation", "positional", "call", "range"],
)
def test_parse_refuses_what_is_no_genotype(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_genotype(text)
