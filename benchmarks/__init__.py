"""Measurements. Nothing here is imported by the package or its tests."""
