"""One HTML file with figures that needs no network, no server and no other file: its frame, and the cards in it."""

from collections.abc import Mapping
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["figure_card", "html_page"]

# The page runs its own scripts and fetches nothing at all.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_NO_SCRIPT = '<noscript><p class="note">A script in this page draws the figures; it is switched off.</p></noscript>'


def html_page(title: str, body: str, figures: "Mapping[str, Figure]") -> str:
    """Return a page as one text.

    Args:
        title: of the page.
        body: its HTML, with a `figure_card` for each of the figures.
        figures: name -> what is drawn in the card of that name.
    """
    from plotly.offline import get_plotlyjs

    assets = resources.files("studies.figures").joinpath("page")
    style = assets.joinpath("page.css").read_text(encoding="utf-8")
    script = assets.joinpath("page.js").read_text(encoding="utf-8")
    library = f"<script>{get_plotlyjs()}</script>" if figures else ""
    data = ",".join(f'"{name}":{_json(figure)}' for name, figure in figures.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<title>{escape(title)}</title><link rel="icon" href="data:,"><style>{style}</style></head>'
        f"<body><main>{body}</main>{_NO_SCRIPT}"
        f'<script type="application/json" id="figures">{{{data}}}</script>'
        f"{library}<script>{script}</script></body></html>"
    )


def figure_card(name: str, title: str, explanation: str, figure: "Figure", *, is_wide: bool = False) -> str:
    """Return the place of a figure on a page, with its title, what it shows and what it leaves out."""
    from studies.figures.style import note_of

    note = note_of(figure)
    remark = f'<p class="note">{escape(note)}</p>' if note else ""
    return (
        f'<figure class="card{" wide" if is_wide else ""}"><figcaption><h3>{escape(title)}</h3>'
        f"<p>{escape(explanation)}</p></figcaption>"
        f'<div class="scroll"><div class="plot" id="figure-{name}" style="height:{int(figure.layout.height)}px"></div>'
        f"</div>{remark}</figure>"
    )


def _json(figure: "Figure") -> str:
    """Return strict JSON that cannot end the script element that holds it."""
    import plotly.io

    text: str = plotly.io.to_json(figure, validate=False, engine="json")
    return text.replace("<", "\\u003c")
