"""Solution of the exercise `rank_labels`."""

import numpy as np


def rank_labels(tokens, documents, owned):
    """Give every rank the labels of its own positions: each position predicts the next token.

    tokens (S,) and documents (S,) are integers in the order of the text; documents −1 is padding.
    owned lists the global positions of each rank, in the order in which it stores them. Return a
    list of one integer array per rank. The last position of a document and padding have label −1.
    """
    # >>> yours
    labels = np.full(len(tokens), -1)
    follows = (documents[1:] == documents[:-1]) & (documents[:-1] != -1)
    labels[:-1][follows] = tokens[1:][follows]
    return [labels[positions] for positions in owned]
    # <<<
