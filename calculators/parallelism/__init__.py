"""Two accelerators or more: tensor parallel, pipeline parallel, or separate replicas."""

from calculators.parallelism.check import check
from calculators.parallelism.compute import ParallelismInputs, compute
from calculators.parallelism.wording import answer
from calculators.room import Calculator

ROOM = Calculator(
    name="parallelism",
    title="Tensor or pipeline",
    question="Several accelerators for one model: tensor parallel, pipeline parallel, or separate replicas?",
    icon=":material/account_tree:",
    section="First token",
    inputs=ParallelismInputs,
    compute=compute,
    answer=answer,
    check=check,
)
"""The catalog's entry."""
