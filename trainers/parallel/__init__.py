"""How several ranks train one network together: each module one way, behind `Parallel`."""
