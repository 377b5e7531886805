"""One package for each question that a planner asks, and the small kit they share.

The kit: :mod:`~calculators.inputs` (what an input is), :mod:`~calculators.outputs` (what a result is),
:mod:`~calculators.scenario` (the inputs that calculators share), :mod:`~calculators.links` (inputs to and
from a URL), :mod:`~calculators.export` (figures and tables to files), :mod:`~calculators.plots` (how every
figure looks), :mod:`~calculators.page_kit` (how every page is drawn), :mod:`~calculators.catalog` (the
ordered list of calculators that ``app.py``, the command line and the tests read).
"""

import os

# Before NumPy is imported: the formulas solve small systems, for which several threads cost many times what they bring on a
# machine that has other work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
