"""What still equals the right result when a wrong function takes part in a training step.

`faults.AGREES` says it of the faults of a run. STEP_AGREES says it of the functions of `pitfalls`
and `training_pitfalls`, and of a return that is lost, on generic causal inputs with R ≥ 3, where
the fault does not hide. Whoever compares only what is declared here will not see the fault.

The step: query, key and value are projected and turned by position; the ranks attend; a projection
makes logits of the output; the loss is taken; every rank goes back. Of its results

- output and lse are those of the attention;
- loss is one number. Around a wrong loss or wrong labels it is the cross entropy of the next token.
  Elsewhere it is linear in the logits, as in `faults.AGREES`, so that a wrong output still gets the
  right dout; under any other loss every gradient that comes back to a wrong output is wrong too;
- dq, dk and dv belong to query, key and value as they were projected: before the turn, and before
  any head is repeated;
- weights are the gradients of all projections, summed over the ranks. They need the output and
  dq, dk and dv, so they agree only where all of these do.

A function that has no backward of its own goes with the one that its docstring names. A mean keeps
the lse of the whole row: it has none of its own. A wrong lse takes part in the merge of
(output, lse) pairs, so it spoils the output as well. Sums in 16 bits are the sums over chunks, over
blocks and over ranks.
"""

ATTENTION = frozenset({"output", "lse"})
GRADIENTS = frozenset({"dq", "dk", "dv"})
EVERYTHING = ATTENTION | GRADIENTS | {"loss", "weights"}
NOTHING: frozenset[str] = frozenset()

STEP_AGREES: dict[str, frozenset[str]] = {
    # Merges and means
    "equal_weight_mean": frozenset({"lse"}),
    "mean_over_all_chunks": frozenset({"lse"}),
    "key_count_mean": frozenset({"lse"}),
    "merge_without_rescale": NOTHING,
    "merge_rescaling_sum_only": frozenset({"lse", "dv"}),  # dv needs no output
    "merge_with_flipped_sign": NOTHING,
    "add_lse": NOTHING,
    # Loss and labels: the attention before them is right
    "mean_of_rank_means": ATTENTION,
    "rank_mean": ATTENTION,  # one rank without valid tokens: the loss and its gradients are NaN
    "rank_mean_gradient": ATTENTION | {"loss"},
    "shift_after_shard": ATTENTION,
    # Gradients on their way
    "averaged_over_ranks": EVERYTHING - {"weights"},
    "lost_return": ATTENTION | {"loss", "dq"},
    # Positions and lengths
    "local_rotary": NOTHING,
    "floor_divided_cu_seqlens": NOTHING,
    # Precision
    "sum_in_16_bits": NOTHING,
    "lse_in_16_bits": NOTHING,
    # Wasteful, not wrong
    "repeat_kv_heads": EVERYTHING,
}
