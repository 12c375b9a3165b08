"""What the first bytes of a request say."""

from __future__ import annotations

import pytest

from kwire.errors import Truncated
from kwire.messages import ApiVersionsRequest, ProduceRequest, SaslHandshakeRequest
from kwire.protocol import write_request
from kwire.tap.requests import Acks, looks_like_request, peek_acks, read_head


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12, 13])
@pytest.mark.parametrize("acks", [-1, 0, 1])
@pytest.mark.parametrize("client_id", [None, "", "a client"])
@pytest.mark.parametrize("transactional_id", [None, "t" * 200])
def test_acks_are_read_in_every_form(
    version: int, acks: int, client_id: str | None, transactional_id: str | None
) -> None:
    body = ProduceRequest(acks=acks, transactional_id=transactional_id)
    frame, _ = write_request(body, version, correlation_id=7, client_id=client_id)
    expected = Acks.SOME if acks else Acks.NONE
    assert peek_acks(frame, version) is expected
    before = next(size for size in range(len(frame) + 1) if peek_acks(frame[:size], version) is not Acks.UNKNOWN)
    assert peek_acks(frame[:before], version) is expected
    assert peek_acks(frame[: before - 1], version) is Acks.UNKNOWN


def test_a_head_needs_a_correlation_id() -> None:
    frame, _ = write_request(SaslHandshakeRequest(mechanism="PLAIN"), 0, correlation_id=-5, client_id="c")
    head = read_head(frame[:12])
    assert (head.api_key, head.version, head.correlation_id, head.is_known) == (17, 0, -5, True)
    with pytest.raises(Truncated):
        read_head(frame[:11])


TOKENS = [
    b"", b"\x01", b"\0u\0p", b"\0A\0p", b"\0AB\0secret", b"\0B\0\x7f", b"az\0user\0password",
    b"n,,n=user,r=abc", b"c=biws,r=abc,p=x", b"n,,\x01auth=Bearer x\x01\x01",
    b"\x60\x82\x02\x5c\x06\x09\x2a\x86\x48", b"\x05\x04\x05\xff\0\x0c\0\0", b"\xff" * 20,
]  # fmt: skip


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_of_sasl_are_not_requests(token: bytes) -> None:
    assert not looks_like_request(len(token).to_bytes(4, "big") + token)


def test_requests_are() -> None:
    for version in (0, 3, 4):
        frame, _ = write_request(ApiVersionsRequest(), version, correlation_id=0, client_id="c")
        assert looks_like_request(frame)
