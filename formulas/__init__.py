"""Closed forms and the numerics they need: plain SI numbers and NumPy arrays in, the same out.

No module here reads a file, knows a hardware figure or draws anything.
"""
