"""A museum of field bugs: wrong rings of one fault each, and one checklist that tells them apart.

Each fault is of a kind that a public report describes, rebuilt in a few lines around the tested
core. Nothing right imports this package, and it loads numpy only.
"""

from cpcore.museum.checklist import CHECKLIST
from cpcore.museum.checks import Check, Verdict
from cpcore.museum.examination import EXHIBITS, examine, failed, matrix
from cpcore.museum.exhibits import Exhibit, Source
from cpcore.museum.page import Page
from cpcore.museum.system import Answer, Case, System
from cpcore.museum.visit import Museum

__all__ = [
    "CHECKLIST",
    "EXHIBITS",
    "Answer",
    "Case",
    "Check",
    "Exhibit",
    "Museum",
    "Page",
    "Source",
    "System",
    "Verdict",
    "examine",
    "failed",
    "matrix",
]
