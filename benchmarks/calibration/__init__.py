"""Sets of step-time assumptions fitted to measured token times: ``python -m benchmarks.calibration FILE``.

FILE is `silicon_sample.csv` of ai-dynamo/aiconfigurator (Apache-2.0), or a part of its rows, plain or with gzip: runs of
InferenceMAX/InferenceX, and some of the tool's own. For each set of :mod:`benchmarks.calibration.sets` it prints the
record for hardware_db/data/assumptions, and where the errors are largest. ``--held-out FILE`` writes the rows that were
not fitted, for tests/calculators/fixtures. Three minutes for all.

* **Model.** :mod:`calculators.closed_loop`: rows are closed loops, so that TPOT holds the others' prompts.
* **Rows.** :mod:`benchmarks.calibration.rows` says which are left out, and counts them by reason.
* **Split.** A configuration is a model, a weight format, a chip, a tensor parallel degree and a pair of lengths; its rows
  differ in the requests in flight. In each table of degrees against lengths every third diagonal is held out: each
  degree and each pair of lengths is seen in the fit where the table has enough, but not that one together.
* **Fit.** Robust least squares of the logarithm (soft L1 beyond 5 %), with a weak pull of each value to what is usual,
  so that what the rows do not tell (a step's overhead from an all-reduce's latency, say) stays near it.
"""
