"""A ring in one process, for answers that are written from the view of one rank.

Owns the player: generators take turns, each yields what it sends to the next rank and gets what
the rank before has sent. It refuses what no real ring would carry.
"""

import contextlib
import copy
import inspect
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from cpcore.exercises.bank.inputs import Array
from cpcore.exercises.calls import ComplaintError
from cpcore.exercises.values import same

Program = Generator[Any, Any, Any]
FORWARD = "A rank with nothing to compute still passes its message on, and every rank hops alike"


def play(programs: list[Program], most_hops: int, most_numbers: int) -> list[Any]:
    """What each rank returns.

    Raises: ComplaintError, in words for the reader, if ranks do not yield equally often, hop more
        often than `most_hops`, or send more than `most_numbers` numbers at once.
    """
    with contextlib.ExitStack() as stack:
        for program in programs:
            stack.callback(program.close)  # here, where the time limit still holds
        return _played(programs, most_hops, most_numbers)


def _played(programs: list[Program], most_hops: int, most_numbers: int) -> list[Any]:
    results: dict[int, Any] = {}
    sent: list[Any] = []
    arrived: list[Any] = [None] * len(programs)
    for hop in range(most_hops + 1):
        before, sent = sent, []
        for rank, program in enumerate(programs):
            try:
                sent.append(copy.deepcopy(program.send(arrived[rank])))
            except StopIteration as end:
                results[rank] = end.value
            except Exception:
                _check_alike(before, hop)
                raise
        if len(results) == len(programs):
            return [results[rank] for rank in range(len(programs))]
        if results:
            done, more = min(results), min(set(range(len(programs))) - set(results))
            raise ComplaintError(
                f"after {hop} hops rank {done} has returned while rank {more} still yields: one "
                "waits for the other for ever. {FORWARD}"
            )
        _check_size(sent, most_numbers)
        arrived = [sent[rank - 1] for rank in range(len(programs))]
    raise ComplaintError(f"it hops more than {most_hops} times, which {len(programs)} ranks need")


def _check_alike(sent: list[Any], hop: int) -> None:
    """Messages of two kinds in one hop: a rank has hopped too rarely or too often."""
    counts = [len(each) if isinstance(each, tuple | list) else 1 for each in sent]
    other = next((rank for rank, count in enumerate(counts) if count != counts[0]), None)
    if other is not None:
        raise ComplaintError(
            f"in hop {hop} rank 0 sends {counts[0]} arrays and rank {other} sends {counts[other]}: "
            f"one of them is a hop behind. {FORWARD}"
        )


def _check_size(sent: list[Any], most: int) -> None:
    for rank, payload in enumerate(sent):
        arrays = payload if isinstance(payload, tuple | list) else (payload,)
        count = sum(np.size(array) for array in arrays)
        if count > most:
            raise ComplaintError(
                f"rank {rank} sends {count} numbers in one message; one block with its gradient "
                f"has {most}"
            )


def played(
    answer: Callable[..., Any],
    arguments: list[tuple[Any, ...]],
    names: str,
    most_hops: int,
    most_numbers: int,
) -> list[Any]:
    """What each rank returns, called with its number, the count of ranks and its arguments.

    names: of the arguments, in one text. Raises: as `play`, and if a rank changes an argument.
    """
    kept = copy.deepcopy(arguments)
    results = play(programs_of(answer, arguments), most_hops, most_numbers)
    for rank, (mine, fresh) in enumerate(zip(arguments, kept, strict=True)):
        for name, now, then in zip(names.split(), mine, fresh, strict=True):
            if not same(now, then):
                raise ComplaintError(
                    f"rank {rank} changed its argument {name}; write the result into a new array"
                )
    return results


def programs_of(answer: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Program]:
    """One generator per rank.

    Raises: ComplaintError if the answer never yields.
    """
    made = [answer(rank, len(arguments), *args) for rank, args in enumerate(arguments)]
    for program in made:
        if not inspect.isgenerator(program):
            raise ComplaintError("it has no yield, so no rank hears of any other")
    return made


def shards(array: Array, lengths: list[int]) -> list[Array]:
    """Consecutive rows of these lengths, as copies."""
    return [part.copy() for part in np.split(array, np.cumsum(lengths)[:-1])]


def joined(results: list[Any], count: int, order: Array | None = None) -> tuple[Array, ...]:
    """The results of all ranks, each of `count` arrays, one after the other or in logical order.

    Raises: ComplaintError if a rank returns something else.
    """
    for rank, result in enumerate(results):
        if not isinstance(result, tuple | list) or len(result) != count:
            raise ComplaintError(f"rank {rank} does not return a tuple of {count} arrays")
    try:
        whole = [np.concatenate(parts) for parts in zip(*results, strict=True)]
    except ValueError as error:
        raise ComplaintError(f"the results of the ranks do not fit together: {error}") from None
    if order is not None and any(len(x) != len(order) for x in whole):
        raise ComplaintError("a rank returns another number of rows than it owns")
    return tuple(whole if order is None else (x[np.argsort(order)] for x in whole))
