"""Decode under load: the batch that forms by itself, and the time per output token that goes with it."""

from formulas.decode_pool.affine import (
    AFFINE_MAX_RATE,
    AFFINE_MEAN_BATCH,
    AFFINE_MEAN_TPOT,
    AFFINE_RATIO,
    AFFINE_SHAPE,
    AFFINE_TPOT_VARIANCE,
    affine_batch_law,
    affine_tpot_quantile,
)
from formulas.decode_pool.averaging import FIXED_AVERAGING, RANDOM_AVERAGING, Lengths, averaging
from formulas.decode_pool.bunched import BunchedTimes
from formulas.decode_pool.law import PoolLaw, capacity, stationary_law
from formulas.decode_pool.pipeline import PIPELINE_ROUND, micro_batch, round_times
from formulas.decode_pool.rate import max_rate

__all__ = [
    "AFFINE_MAX_RATE",
    "AFFINE_MEAN_BATCH",
    "AFFINE_MEAN_TPOT",
    "AFFINE_RATIO",
    "AFFINE_SHAPE",
    "AFFINE_TPOT_VARIANCE",
    "FIXED_AVERAGING",
    "PIPELINE_ROUND",
    "RANDOM_AVERAGING",
    "BunchedTimes",
    "Lengths",
    "PoolLaw",
    "affine_batch_law",
    "affine_tpot_quantile",
    "averaging",
    "capacity",
    "max_rate",
    "micro_batch",
    "round_times",
    "stationary_law",
]  # fmt: skip
