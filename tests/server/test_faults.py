"""Faults as they are ordered."""

import pytest

from surtitle.core.errors import UsageError
from surtitle.server.faults import (
    FAULTS,
    Cut,
    Fault,
    FaultKind,
    Stage,
    describe,
    parse_fault,
    parse_plan,
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("rst", Fault(kind=FaultKind.RST)),
        ("rst@3", Fault(kind=FaultKind.RST, after=3)),
        ("close@1", Fault(kind=FaultKind.CLOSE, number=1011, after=1)),
        ("close:1012@1", Fault(kind=FaultKind.CLOSE, number=1012, after=1)),
        ("refuse", Fault(kind=FaultKind.REFUSE, number=5)),
        ("refuse:0.5", Fault(kind=FaultKind.REFUSE, number=0.5)),
        ("http:503", Fault(kind=FaultKind.HTTP, number=503)),
        ("http:400/Other", Fault(kind=FaultKind.HTTP, number=400, word="Other")),
        ("cut:2", Fault(kind=FaultKind.CUT, number=2, word=Cut.END)),
        ("cut:2/goaway", Fault(kind=FaultKind.CUT, number=2, word=Cut.GOAWAY)),
        ("model-error:Code", Fault(kind=FaultKind.MODEL_ERROR, word="Code")),
    ],
)
def test_a_fault_is_read(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    "text",
    [
        *("", "nothing", "RST", "rst@", "rst@-1", "rst@x", "rst:1", "http", "http:", "http:200"),
        *("http:503@1", "refuse@1", "refuse:0", "refuse:x", "delay", "delay:-1", "delay:nan"),
        *("close:999", "close:5000", "cut", "cut:1/other", "slow-reader:-1", "model-error:"),
    ],
)
def test_what_is_no_fault_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_fault(text)
    assert caught.value.field == "--fault"
    assert caught.value.remedy


def test_a_plan_is_several_at_once() -> None:
    assert [fault.kind for fault in parse_plan("delay:1+split+rst@3")] == [
        FaultKind.DELAY,
        FaultKind.SPLIT,
        FaultKind.RST,
    ]
    assert parse_plan(None) == parse_plan("") == ()


def test_faults_of_a_connection_stand_alone() -> None:
    with pytest.raises(UsageError):
        parse_plan("stall-tls+rst")


def test_every_fault_is_described() -> None:
    assert set(FAULTS) == set(FaultKind)
    assert all(str(kind) in describe() for kind in FaultKind)
    assert {described.stage for described in FAULTS.values()} == set(Stage)
