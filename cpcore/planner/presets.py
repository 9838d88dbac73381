"""Published shapes and speeds, by name.

Owns the numbers. Where each was read, and when, is in `book/data/preset_sources.json`; a test
compares the two lists. Leaves out every formula.
"""

from __future__ import annotations

from cpcore.planner.arguments import one_of
from cpcore.planner.shapes import Hardware, ModelShape

MODELS: dict[str, ModelShape] = {
    shape.name: shape
    for shape in (
        ModelShape("Llama 2 7B", 32, 4096, 32, 32, 128, 11_008, 32_000),
        ModelShape("Llama 3.1 8B", 32, 4096, 32, 8, 128, 14_336, 128_256),
        ModelShape("Llama 3.1 70B", 80, 8192, 64, 8, 128, 28_672, 128_256),
        ModelShape("Llama 3.1 405B", 126, 16_384, 128, 8, 128, 53_248, 128_256),
    )
}

GB = 10**9
HARDWARE: dict[str, Hardware] = {
    device.name: device
    for device in (
        Hardware("A100", 312e12, 80 * GB, 2.0e12, 8, 300e9, 25e9),
        Hardware("H100", 989e12, 80 * GB, 3.35e12, 8, 450e9, 50e9),
        Hardware("H200", 989e12, 141 * GB, 4.8e12, 8, 450e9, 50e9),
        Hardware("B200", 2250e12, 192 * GB, 8.0e12, 8, 900e9, 50e9),
        Hardware("TPU v5p", 459e12, 95 * 2**30, 2765e9, 8960, 100e9, 6.25e9),
    )
}


def model_shape(name: str) -> ModelShape:
    """The published shape of this name.

    Raises: ValueError naming the shapes that there are.
    """
    return MODELS[one_of("name", name, MODELS)]


def hardware(name: str) -> Hardware:
    """The published machine of this name.

    Raises: ValueError naming the machines that there are.
    """
    return HARDWARE[one_of("name", name, HARDWARE)]
