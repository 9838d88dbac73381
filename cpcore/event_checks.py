"""Checks of a stream of events before it is played or counted.

Owns what can be said of the events alone: their kind, their ranks, their keys, their phases.
Leaves out whether the messages fit together, which `exchange` finds while it delivers them.
"""

from collections.abc import Iterable

from cpcore.checks import expected
from cpcore.layouts import Layout
from cpcore.schedule import Event


def check_events(
    events: Iterable[Event], layout: Layout, phases: Iterable[str] = ()
) -> list[Event]:
    """The events as a list: each names ranks of the layout, and keys that its owner has.

    phases: those that must occur. Other phases may be there too and a part of a phase is enough:
    what is missing from one shows in its result.

    Raises: ValueError for anything else.
    """
    if not isinstance(layout, Layout):
        raise expected("layout", "a Layout", type(layout).__name__)
    if not isinstance(events, Iterable):
        raise expected("events", "an iterable of Event", type(events).__name__)
    checked, ranks, lengths = [], range(layout.cp_size), layout.lengths
    for event in events:
        if not isinstance(event, Event):
            raise expected("events", "an iterable of Event", f"one of {type(event).__name__}")
        if event.rank not in ranks or event.owner not in ranks:
            raise expected("events", f"ranks below {layout.cp_size}", event)
        if not 0 <= event.key_start <= event.key_stop <= lengths[event.owner]:
            raise expected("events", f"keys within the owner's {lengths[event.owner]}", event)
        checked.append(event)
    for phase in phases:
        if all(event.phase != phase for event in checked):
            raise expected("events", f"events of phase {phase!r}", "none")
    return checked


def check_lost_return(fault: object, events: Iterable[Event]) -> None:
    """Raise unless some event of the return carries what the fault ('lost_return', …) loses."""
    if isinstance(fault, tuple):
        returned = {(event.rank, event.owner) for event in events if event.phase == "return"}
        if fault[1:] not in returned:
            raise expected("fault", "(rank, owner) of a return that the events hold", repr(fault))
