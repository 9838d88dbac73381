"""The names that other programs call: fixed, in this order, keyword-only after the arrays."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import cpcore
from cpcore import Dropout, Event, Layout, LedgerRow, Run, Visibility

SIGNATURES = {
    "attention_chunk_stats": "query key_chunk value_chunk * visible scale keep",
    "merge_chunk_stats": "acc chunk",
    "empty_stats": "rows_shape value_dim dtype",
    "finalize": "stats dtype",
    "ring_attention": "query key_chunks value_chunks"
    " * visibility query_positions key_positions scale",
    "dense_attention": "query key value * visible scale keep",
    "dense_attention_backward": "query key value dout * visible scale keep",
    "contiguous": "seq_len cp_size",
    "striped": "seq_len cp_size stripe",
    "zigzag": "seq_len cp_size",
    "from_lengths": "lengths",
    "from_owned": "owned",
    "per_document": "cu_seqlens cp_size layout",
    "schedule": "layout visibility * protocol max_block backward",
    "simulate": "query key value layout visibility"
    " * dout protocol max_block scale dropout fault events",
    "ledger": "events layout * q_heads kv_heads head_dim value_dim"
    " element_bytes grad_bytes state_bytes",
    "Dropout": "rate seed",
    "Visibility": "causal window documents relation",
}
FIELDS = {
    Event: "phase step rank owner key_start key_stop verdict pairs stream sent_tokens send_to"
    " received_tokens recv_from",
    Run: "output lse dq dk dv events per_rank",
    LedgerRow: "rank phase tokens_sent tokens_received elements_sent elements_received bytes_sent"
    " bytes_received messages collectives qkv remote_block online_state workspace output lse"
    " gradients buffers",
    cpcore.ChunkStats: "output sum max",
}
METHODS = {
    Layout: "cp_size seq_len owned lengths permutation inverse shard unshard",
    Visibility: "block verdict pairs",
    Dropout: "keep",
}


def written(function: Callable[..., Any]) -> str:
    """Parameter names, with * before the first that is keyword-only."""
    names = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in names:
            names.append("*")
        names.append(name)
    return " ".join(names)


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_public_function_has_these_parameters(name: str) -> None:
    assert name in cpcore.__all__
    assert written(getattr(cpcore, name)) == SIGNATURES[name]


@pytest.mark.parametrize("record", FIELDS, ids=lambda record: record.__name__)
def test_a_public_record_starts_with_these_fields(record: Any) -> None:
    """More may follow: `collective` of an event, `resident_bytes` of a row."""
    fields = FIELDS[record].split()
    assert list(record._fields[: len(fields)]) == fields
    assert set(record._fields[len(fields) :]) <= {"collective", "resident_bytes"}


@pytest.mark.parametrize("cls", METHODS, ids=lambda cls: cls.__name__)
def test_a_public_class_has_these_members(cls: Any) -> None:
    have = set(dir(cls)) | set(inspect.signature(cls).parameters)
    assert set(METHODS[cls].split()) <= have


def test_defaults_are_those_of_the_design() -> None:
    defaults = {
        name: {
            key: parameter.default
            for key, parameter in inspect.signature(getattr(cpcore, name)).parameters.items()
            if parameter.default not in (parameter.empty, None)
        }
        for name in SIGNATURES
    }
    assert {name: given for name, given in defaults.items() if given} == {
        "striped": {"stripe": 1},
        "per_document": {"layout": cpcore.zigzag},
        "schedule": {"protocol": "ring", "backward": True},
        "simulate": {"protocol": "ring"},
        "ledger": {"element_bytes": 8},
        "Visibility": {"causal": True},
    }
