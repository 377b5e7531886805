"""Simulations that check the formulas, each with its seed, its size and its confidence intervals."""
