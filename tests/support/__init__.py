"""Helpers that tests share. Numeric references come from `dense` or from plain loops, never from
the code under test.
"""
