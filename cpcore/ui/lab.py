"""The two-owner laboratory: one attention over five positions, computed by two ranks.

Results come from `simulate`, costs from `ledger`, the reference from dense attention; this module
puts the words to them.
"""

from __future__ import annotations

from cpcore.ui.controls import Choice, Step
from cpcore.ui.explorable import Explorable
from cpcore.ui.lab_events import Snapshot, snapshots
from cpcore.ui.lab_facts import EMPTY_ROW, POSITIONS, SPLITS, Facts, facts
from cpcore.ui.lab_panels import differences_panel, matrix_panel, span
from cpcore.ui.lab_tables import collapsed, event_table, final_table, opened
from cpcore.ui.svg import verdict

LAST = 5 * POSITIONS - 1  # blocks of one key: each rank reads all five twice and returns the rest
CONTROLS = (
    Choice(
        "split",
        "Positions per rank",
        tuple((name, f"{a} + {b}") for name, (a, b) in SPLITS.items()),
    ),
    Choice(
        "block",
        "Largest block",
        (("whole", "whole shard"), ("2", "2 positions"), ("1", "1 position")),
    ),
    Choice(
        "visibility",
        "Visibility",
        (
            ("causal", "causal"),
            ("full", "full"),
            ("empty-row", f"causal, row {EMPTY_ROW} sees nothing"),
        ),
    ),
    Choice(
        "path",
        "Computation path",
        (
            ("correct", "correct"),
            ("local-masks", "local masks"),
            ("mean", "equal-weight mean"),
            ("lost", "lost gradient, rank 1 to rank 0"),
        ),
    ),
    Step("event", "Event", LAST),
)
PATHS = {
    "correct": (
        "Correct path. Backward: every block is replayed with the whole row's lse and output; the "
        "owner sums what returns."
    ),
    "local-masks": (
        "Local masks: each rank numbers its own positions from 0 and masks by these numbers. "
        "Backward: the same wrong masks, so it is the right gradient of a wrong function."
    ),
    "mean": (
        "Equal-weight mean: each block finishes its own softmax, and a row takes the mean over the "
        "B blocks in which it sees a key; the event table shows each block's own max and exp-sum, "
        "and the mean so far. Backward: that of the mean, every block with its own softmax and "
        "dout / B."
    ),
    "lost": (
        "Lost gradient: what rank 1 computed for the keys of rank 0 never arrives. Forward is "
        "right, so the loss is equal. Backward: right except for this return, so dK and dV of rank "
        "0 miss the share of rank 1's queries."
    ),
}
NOTHING_TO_MASK = " With full visibility nothing is masked, so the path is right here."
OTHER_WAY = {
    "causal": " The return from rank 0 to rank 1 has nothing to lose: no query of rank 0 sees a "
    "key of rank 1.",
    "full": " The return from rank 0 to rank 1 still arrives.",
}
LOSS = (
    "<p><b>Loss.</b> The sum of dout \N{MIDDLE DOT} output over all positions, divided by 5; a row "
    "that sees nothing counts. So each row's upstream gradient is dout / 5. A row without any key "
    "has output 0 and sends no gradient.</p>"
)
ORDER = (
    "<p><b>Order.</b> This page visits a rank's own block first; processes may use one order of "
    "owners for all. Both normalize over the whole row. The number of messages depends on the "
    "largest block, the number of elements does not.</p>"
)
SCOPE = (
    "<p><b>Scope.</b> Q, K and V are independent inputs without a shared projection or dropout. "
    "Nothing here estimates a GPU. The snapshots that this page keeps are for teaching; they are "
    "no claim about memory.</p>"
)


def draw(split: str, block: str, visibility: str, path: str, event: int) -> tuple[str, ...]:
    """Caption, matrix, differences, event and end, notes, and the other tables of one state."""
    known, every = facts(split, block, visibility, path), snapshots(split, block, visibility, path)
    place = min(event, len(every) - 1)  # past its end the cursor stays on the last event
    now = every[place]
    return (
        f"<p>Event {place} of {len(every) - 1}, {_sentence(known, now)}. "
        f"After all events: <b>{verdict(known.right)}</b>.</p>",
        matrix_panel(known, now),
        differences_panel(known),
        opened(event_table(now), "\n", final_table(known)),
        f'<div class="cp-note"><p><b>Path.</b> {_path(visibility, path)}</p>{LOSS}{ORDER}{SCOPE}'
        "</div>",
        collapsed(known),
    )


def _sentence(known: Facts, now: Snapshot) -> str:
    """What happens in the event."""
    event = now.event
    keys = f"key{'s' * (event.key_stop - event.key_start > 1)} {span(known, event)}"
    if event.phase == "return":
        end = "; it is lost on the way" if now.lost else ", which adds it to its own"
        return (
            f"return: rank {event.rank} sends its share of dK and dV for {keys} to rank "
            f"{event.send_to}{end}"
        )
    verb = "reads" if event.phase == "forward" else "replays"
    source = "of its own"
    if event.owner != event.rank:
        source = f"received from rank {event.owner}"
    nothing = "" if known.mask(event).any() else "; no query sees any, so nothing changes"
    return f"{event.phase}: rank {event.rank} {verb} {keys} {source}{nothing}"


def _path(visibility: str, path: str) -> str:
    """What the path does, which backward goes with it, and what is special here."""
    if path == "local-masks" and visibility == "full":
        return PATHS[path] + NOTHING_TO_MASK
    if path == "lost":
        return PATHS[path] + OTHER_WAY["full" if visibility == "full" else "causal"]
    return PATHS[path]


laboratory = Explorable(
    name="laboratory",
    title="Two-owner laboratory",
    summary=(
        "Five positions of width 2, two ranks. Choose how they share the work and which mistake "
        "they make. The cursor moves through the events; differences and results are those after "
        "all of them."
    ),
    controls=CONTROLS,
    drawing=draw,
)
