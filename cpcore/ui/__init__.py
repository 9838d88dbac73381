"""What a reader plays with: explorables, drawn by Python, live in Jupyter and in the built page.

ipywidgets and matplotlib may be imported below this package only, and only when first needed.
"""

from __future__ import annotations

from cpcore.ui.averaging import loss_explorer
from cpcore.ui.bill import bill_explorer
from cpcore.ui.calculator import calculator
from cpcore.ui.catalogue import catalogue
from cpcore.ui.explorable import Explorable
from cpcore.ui.lab import laboratory
from cpcore.ui.merge import merge_stepper
from cpcore.ui.merge_order import merge_order
from cpcore.ui.network import network_lab
from cpcore.ui.quiz import Quiz, quiz
from cpcore.ui.schedule import schedule_explorer
from cpcore.ui.split import split_explorer

__all__ = [
    "Explorable",
    "Quiz",
    "bill_explorer",
    "calculator",
    "catalogue",
    "laboratory",
    "loss_explorer",
    "merge_order",
    "merge_stepper",
    "network_lab",
    "quiz",
    "schedule_explorer",
    "split_explorer",
]
