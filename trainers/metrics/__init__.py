"""What answers are worth: each item counts once, on however many ranks.

`names` and `defined` say what is measured, and load no torch; the other modules measure.
"""
