"""The judge: what it is shown, how its answer is read, and what happens when it cannot be used.

A rating exists only when it was read for certain; everything else is a skip with a reason.
"""
