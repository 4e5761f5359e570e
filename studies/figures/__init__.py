"""Pictures of a study. `gallery` names them, `snapshot` is what they are drawn from, `network` draws a cell.

The package itself imports nothing, so that a drawing of a network does not load plotly.
"""
