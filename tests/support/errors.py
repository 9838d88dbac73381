"""How tests state an expected refusal."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def refused(argument: str, wanted: object, received: object) -> Iterator[None]:
    """The block raises a ValueError that names the argument, what was expected and received."""
    with pytest.raises(ValueError, match=r"expected .+, received ") as caught:
        yield
    assert type(caught.value) is ValueError
    assert str(caught.value) == f"{argument}: expected {wanted}, received {received}"
