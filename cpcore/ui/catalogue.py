"""Every explorable by name. The build writes the pictures of each entry."""

from __future__ import annotations

from cpcore.ui.averaging import loss_explorer
from cpcore.ui.bill import bill_explorer
from cpcore.ui.calculator import calculator
from cpcore.ui.explorable import Explorable
from cpcore.ui.lab import laboratory
from cpcore.ui.merge import merge_stepper
from cpcore.ui.merge_order import merge_order
from cpcore.ui.network import network_lab
from cpcore.ui.schedule import schedule_explorer
from cpcore.ui.split import split_explorer

catalogue: dict[str, Explorable] = {
    entry.name: entry
    for entry in (
        split_explorer,
        merge_stepper,
        network_lab,
        schedule_explorer,
        laboratory,
        merge_order,
        calculator,
        loss_explorer,
        bill_explorer,
    )
}
