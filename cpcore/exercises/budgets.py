"""What an exercise forbids an answer whose results are all right.

Owns the budget of lines and the rule to write everything oneself.
"""

from cpcore.exercises.cost import Cost
from cpcore.exercises.exercise import Exercise
from cpcore.exercises.results import Failure


def over_budget(exercise: Exercise, cost: Cost) -> Failure | None:
    """The first of the exercise's own rules that the answer breaks."""
    most = exercise.most_lines
    if most is not None and cost.lines > most:
        what = f"your code has {cost.lines} lines that ran"
        return Failure(f"At most {most} lines of code", "", what, "", "")
    if exercise.from_scratch and cost.package:
        what = f"your code uses {', '.join(cost.package)} of the package; write that part yourself"
        return Failure("No call of the package", "", what, "", "")
    return None
