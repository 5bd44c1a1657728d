"""A job: one TOML file that says what is trained, on which columns, and how.

Unknown keys, wrong types and combinations that cannot work are refused when the job is read, in one line that
says where and how to put it right.
"""

from colonnade.job.files import job_from, read_job, read_toml, readable, refuse_unknown, with_defaults
from colonnade.job.sections import (
    SERVER,
    Cascade,
    Data,
    Device,
    Direction,
    FaultPlan,
    Job,
    Kernel,
    LossName,
    ModelSpec,
    ModelSpecs,
    Net,
    PrivacyTerms,
    Section,
    Secure,
    ServerSpec,
    SumName,
    Train,
    Training,
    Woe,
    World,
    numbered_parties,
)

__all__ = [
    "SERVER",
    "Cascade",
    "Data",
    "Device",
    "Direction",
    "FaultPlan",
    "Job",
    "Kernel",
    "LossName",
    "ModelSpec",
    "ModelSpecs",
    "Net",
    "PrivacyTerms",
    "Section",
    "Secure",
    "ServerSpec",
    "SumName",
    "Train",
    "Training",
    "Woe",
    "World",
    "job_from",
    "numbered_parties",
    "read_job",
    "read_toml",
    "readable",
    "refuse_unknown",
    "with_defaults",
]
