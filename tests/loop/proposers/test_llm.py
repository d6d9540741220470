"""Asking a model: what a service may do wrong, each with its name, what it costs, and where the key never goes."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.common.errors import ConfigurationError, KoptError
from kbs.language_model.http import MAX_BODY, check_address
from kbs.language_model.service import Access, Patience
from loop.journal.language_model import ModelChoice
from loop.proposals.proposal import Proposal
from loop.proposers.llm import ModelAnswer, ask
from loop.proposers.reading import Unread
from tests.kbs.language_model import model_server as service
from tests.kbs.language_model.model_server import KEY, ModelServer, closed_port, model_server
from tests.loop.proposers.requests import proposal, request

FORMS = ("openai", "anthropic")
SENDS = Patience("").sends


def answer_of(_: service.Asked) -> str:
    """What a model writes that does as it is told."""
    return json.dumps(proposal())


GOOD = service.well(answer_of)


def choice(form: str = "openai", **more: Any) -> ModelChoice:
    fields: dict[str, Any] = {"provider": form, "name": "m-1", "seconds": 20, "output_tokens": 4000}
    return ModelChoice(**{**fields, **more})


def access(server: ModelServer, form: str, key: str = KEY) -> Access:
    return Access(server.address if form == "openai" else server.anthropic, key, "THE_KEY")


def asked(server: ModelServer, form: str = "openai", waits: list[float] | None = None, **more: Any) -> ModelAnswer:
    return ask(choice(form, **more), access(server, form), request(), 4000, ([] if waits is None else waits).append)


@pytest.mark.processes
@pytest.mark.parametrize("form", FORMS)
def test_a_whole_answer_is_read_and_its_tokens_and_cost_counted(form: str) -> None:
    with model_server(GOOD) as server:
        found = asked(server, form, input_price=Decimal("2.5"), output_price=Decimal(10))
    assert found.outcome == Proposal.model_validate(proposal())
    assert (found.call.input_tokens, found.call.output_tokens, found.call.reported) == (1200, 340, True)
    assert found.call.cost == Decimal("0.0064")  # 1200 × 2.5 / 10⁶ + 340 × 10 / 10⁶
    assert (found.call.model, found.call.answered_by, found.call.sends) == (f"{form}:m-1", "m-1", 1)


@pytest.mark.processes
def test_each_form_is_asked_as_its_service_wants_it() -> None:
    with model_server(GOOD) as server:
        for form in FORMS:
            asked(server, form)
        first, second = server.seen
    assert first.path == "/v1/chat/completions"
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.body["max_completion_tokens"] == 4000
    assert first.body["response_format"]["json_schema"]["schema"]["required"][0] == "schema_version"
    assert second.path == "/v1/messages"
    assert second.headers["x-api-key"] == KEY
    assert second.headers["anthropic-version"] == "2023-06-01"
    assert (second.body["max_tokens"], second.body["tool_choice"]["name"]) == (4000, "propose")
    assert second.body["tools"][0]["input_schema"] == first.body["response_format"]["json_schema"]["schema"]
    assert "authorization" not in second.headers


@pytest.mark.processes
def test_an_unknown_price_makes_an_unknown_cost() -> None:
    with model_server(GOOD) as server:
        assert asked(server, input_price=Decimal(1)).call.cost is None


@pytest.mark.processes
@pytest.mark.parametrize(
    "said", [None, {}, [], {"prompt_tokens": -1, "completion_tokens": 5}, {"prompt_tokens": "many"}]
)
def test_tokens_that_are_not_told_are_bounded_and_said_to_be(said: object) -> None:
    with model_server(service.well(answer_of, usage=said)) as server:
        call = asked(server).call
        sent = int(server.seen[0].headers["content-length"])
    assert (call.input_tokens, call.output_tokens, call.reported) == (sent, 4000, False)


@pytest.mark.processes
def test_cached_tokens_of_a_prompt_are_tokens_of_it() -> None:
    used = {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": None, "output_tokens": 5}
    with model_server(service.well(answer_of, usage=used)) as server:
        call = asked(server, "anthropic").call
    assert (call.input_tokens, call.output_tokens) == (100, 5)


@pytest.mark.processes
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("reaction", "rule", "words"),
    [
        (service.late, "model-timeout", "no whole answer within 0.6 s"),
        (service.late_headers, "model-timeout", "no whole answer within 0.6 s"),
        (service.endless, "model-timeout", "no whole answer within 0.6 s"),
        (service.broken(answer_of), "model-broken", "the connection ended before the answer was whole"),
        (service.hang_up, "model-broken", "the connection ended before the answer was whole"),
        (service.cut_off(answer_of), "model-cut-off", "more tokens than it may have"),
        (service.well(lambda _: "I will not.", ended="refused"), "model-declined", "the model declined: I will not."),
        (service.well(lambda _: "I would suggest more warps."), "schema", "the document"),
        (service.well(lambda _: "{}"), "schema", "hypothesis: Field required"),
        (service.well(lambda _: ""), "schema", "nothing in it"),
        (service.well(lambda _: json.dumps(proposal(accepted=True))), "schema", "accepted: Extra inputs"),
        (service.well(lambda _: json.dumps(proposal(methods=[]))), "schema", "methods"),
        (service.status(200, "<html>hello</html>"), "model-envelope", "are no answer of the form"),
        (service.status(200, "[" * 100_000), "model-envelope", "are no answer of the form"),
        (service.status(200, '{"choices": [], "content": 5}'), "model-envelope", "are no answer of the form"),
        (service.status(200, ""), "model-envelope", "0 bytes that are no answer"),
    ],
)
def test_a_bad_answer_is_no_proposal_and_says_why(form: str, reaction: service.Reaction, rule: str, words: str) -> None:
    quick = rule == "model-timeout"
    started = time.monotonic()
    with model_server(reaction) as server:
        found = asked(server, form, seconds=0.6 if quick else 20)
        assert len(server.seen) == 1
    assert isinstance(found.outcome, Unread)
    assert found.outcome.rule == rule
    assert words in "; ".join(found.outcome.reasons)
    assert found.call.reported == (rule in ("schema", "model-cut-off", "model-declined"))
    assert time.monotonic() - started < 5


@pytest.mark.processes
def test_a_body_without_end_is_not_read_to_the_end() -> None:
    with model_server(service.huge) as server:
        found = asked(server, seconds=60)
    assert isinstance(found.outcome, Unread)
    assert (found.outcome.rule, len(found.data) < 100) == ("model-flood", True)
    assert f"more than {MAX_BODY:,} bytes" in found.outcome.reasons[0]


@pytest.mark.processes
@pytest.mark.parametrize("opening", ["```json\n", "```\n"])
def test_a_document_in_a_markdown_fence_is_read(opening: str) -> None:
    with model_server(service.well(lambda _: f"{opening}{json.dumps(proposal())}\n```\n")) as server:
        assert isinstance(asked(server).outcome, Proposal)


# --- a service that is busy, or does not want us ----------------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize("code", [429, 500, 503, 529])
def test_a_busy_service_is_asked_again_after_a_growing_wait(code: int) -> None:
    waits: list[float] = []
    with model_server(service.status(code), service.status(code), GOOD) as server:
        found = asked(server, waits=waits)
    assert isinstance(found.outcome, Proposal)
    assert found.call.sends == 3
    assert 1 <= waits[0] <= 1.25
    assert 2 <= waits[1] <= 2.5


@pytest.mark.processes
def test_a_service_says_how_long_to_wait() -> None:
    waits: list[float] = []
    with model_server(service.status(429, headers={"Retry-After": "17"}), GOOD) as server:
        asked(server, waits=waits)
    assert waits == [17.0]


@pytest.mark.processes
def test_a_service_that_stays_busy_is_an_error_and_nothing_is_lost() -> None:
    waits: list[float] = []
    with model_server(service.status(503, "try later")) as server, pytest.raises(KoptError) as caught:
        asked(server, waits=waits)
    assert (caught.value.code, len(waits), len(server.seen)) == (
        "model_unavailable",
        SENDS - 1,
        SENDS,
    )
    assert "status 503): try later; the question was sent 4 times" in caught.value.message
    assert "kopt run resume" in caught.value.hint


@pytest.mark.processes
@pytest.mark.parametrize("wanted", ["61", "999999999999999999999"])
def test_a_service_that_wants_a_long_wait_is_not_waited_for(wanted: str) -> None:
    waits: list[float] = []
    reaction = service.status(429, headers={"Retry-After": wanted})
    with model_server(reaction) as server, pytest.raises(KoptError, match="left alone") as caught:
        asked(server, waits=waits)
    assert (caught.value.code, waits) == ("model_unavailable", [])


@pytest.mark.processes
def test_a_service_that_is_not_there_is_an_error() -> None:
    there = Access(f"http://127.0.0.1:{closed_port()}/v1", KEY, "THE_KEY")
    waits: list[float] = []
    with pytest.raises(KoptError) as caught:
        ask(choice(), there, request(), 4000, waits.append)
    assert (caught.value.code, len(waits)) == ("model_unavailable", SENDS - 1)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("code", "kind", "name"),
    [
        (401, ConfigurationError, "model_key_refused"),
        (403, ConfigurationError, "model_key_refused"),
        (404, ConfigurationError, "model_unknown"),
        (301, ConfigurationError, "model_redirected"),
        (400, KoptError, "model_request_refused"),
        (413, KoptError, "model_request_refused"),
    ],
)
def test_what_asking_again_does_not_change_is_an_error_at_once(code: int, kind: type[KoptError], name: str) -> None:
    reaction = service.status(code, "no: you sent {key}\n\x1b[2J", {"Location": "http://127.0.0.1:1/"})
    with model_server(reaction) as server, pytest.raises(kind) as caught:
        asked(server)
    assert (caught.value.code, len(server.seen)) == (name, 1)
    assert KEY not in caught.value.message
    assert "\x1b" not in caught.value.message


# --- the key ----------------------------------------------------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize("form", FORMS)
def test_a_key_that_a_service_repeats_is_not_kept(form: str) -> None:
    spoken = proposal(kernel=f"# {KEY}\n")
    with model_server(service.well(lambda _: json.dumps(spoken)), service.status(200, "you are {key}")) as server:
        good, bad = asked(server, form), asked(server, form)
    assert isinstance(good.outcome, Proposal)
    assert good.outcome.kernel == "# [the key]\n"
    for found in (good, bad):
        assert KEY.encode() not in found.data
        assert KEY not in found.call.model_dump_json()
        assert KEY not in repr(found)


@pytest.mark.processes
def test_a_word_in_place_of_a_key_is_left_in_texts() -> None:
    with model_server(service.well(lambda _: json.dumps(proposal(kernel="none = None\n")))) as server:
        found = ask(choice(), access(server, "openai", "none"), request(), 4000)
    assert isinstance(found.outcome, Proposal)
    assert found.outcome.kernel == "none = None\n"


@pytest.mark.processes
def test_a_key_stands_in_no_description_and_no_question() -> None:
    with model_server(GOOD) as server:
        assert KEY not in repr(access(server, "openai"))
        asked(server)
        assert KEY not in json.dumps(server.seen[0].body)


@pytest.mark.processes
def test_without_a_key_no_header_names_one() -> None:
    with model_server(GOOD) as server:
        for form in FORMS:
            ask(choice(form), access(server, form, ""), request(), 4000)
        assert not any({"authorization", "x-api-key"} & set(seen.headers) for seen in server.seen)


@pytest.mark.processes
@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_service_on_this_machine_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with model_server(GOOD) as server:
        assert isinstance(asked(server).outcome, Proposal)


def test_a_proxy_that_cannot_be_used_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", "nonsense://127.0.0.1:1")
    with pytest.raises(ConfigurationError) as caught:
        ask(choice(), Access("https://example.invalid/v1", KEY, "THE_KEY"), request(), 4000)
    assert caught.value.code == "proxy_unusable"


def test_certificates_that_cannot_be_used_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("no certificate")
    for file in ("none.pem", "missing.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / file))
        with pytest.raises(ConfigurationError) as caught:
            ask(choice(), Access("https://example.invalid/v1", KEY, "THE_KEY"), request(), 4000)
        assert caught.value.code == "certificates_unusable"


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://api.example.org/v1/", "https://api.example.org/v1"),
        (" http://127.0.0.1:8000/v1 ", "http://127.0.0.1:8000/v1"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_an_address_that_can_be_used(address: str, kept: str) -> None:
    assert check_address(address, "OPENAI_BASE_URL", has_key=True) == kept


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "does not begin with"),
        ("api.example.org/v1", "does not begin with"),
        ("file:///etc/passwd", "does not begin with"),
        ("https://me:secret@api.example.org", "user or a password"),
        ("https://api.example.org/v1?key=secret", "query"),
        ("http://api.example.org/v1", "without encryption"),
        ("http://127.0.0.1.example.org/v1", "without encryption"),
        ("https://[::1/v1", "is no address"),
        ("http://127.0.0.1:99999/v1", "port"),
        ("http://<", "name or the number"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_and_not_repeated(address: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        check_address(address, "OPENAI_BASE_URL", has_key=True)
    assert "secret" not in caught.value.message


@given(st.text(max_size=60).map(lambda text: f"http://{text}") | st.text(max_size=60), st.booleans())
def test_an_address_is_refused_or_can_be_used_again(address: str, has_key: bool) -> None:
    try:
        kept = check_address(address, "OPENAI_BASE_URL", has_key=has_key)
    except ConfigurationError:
        return
    assert check_address(kept, "OPENAI_BASE_URL", has_key=has_key) == kept


def test_without_a_key_any_http_address_will_do() -> None:
    assert check_address("http://gpu-box:8000/v1", "OPENAI_BASE_URL", has_key=False) == "http://gpu-box:8000/v1"
