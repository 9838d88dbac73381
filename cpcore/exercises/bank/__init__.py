"""All exercises in the order of the book."""

from cpcore.exercises.bank import chunk_loop, chunk_stats
from cpcore.exercises.exercise import Exercise

FAMILIES = (chunk_stats, chunk_loop)

catalogue: dict[str, Exercise] = {
    exercise.name: exercise for family in FAMILIES for exercise in family.EXERCISES
}
