"""Answers in a model's words: an honest model, one that lies in every way about claims of the bundled wiki, and a
service that fails in every way. Whatever it does, an answer stands, and nothing of a lie."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kbs.answers.model import Answer
from kbs.common.errors import ConfigurationError, KoptError
from kbs.evidence.checking import Status, check_text
from kbs.language_model.service import Access, Service
from kbs.wording.pack import Numbered, numbered
from kbs.wording.wording import Worded
from kopt.services.engine import Engine
from kopt.services.knowledge import answers
from kopt.services.knowledge.answer_text import answer_text
from kopt.services.knowledge.worded import word
from tests.kbs.language_model import model_server as service
from tests.kbs.language_model.model_server import KEY, TOKENS, Asked, ModelServer, Streamed, closed_port, model_server
from tests.kbs.wording.lies import LIES, Fact, Lie, lie

pytestmark = pytest.mark.processes
TITLE = "why is my softmax memory-bound on H100"
QUESTIONS = Path(__file__).parents[2] / "golden" / "questions.jsonl"
FORMS = ("openai", "anthropic")


def ask(engine: Engine, text: str) -> Answer:
    return answers.ask(engine, answers.Asked(text)).answer


def to(server: ModelServer, form: str = "openai") -> Service:
    return Service(form, "m-1", Access(server.address if form == "openai" else server.anthropic, KEY, "KEY"))  # type: ignore[arg-type]


def worded(
    engine: Engine, answer: Answer, there: Service, seconds: float = 20, tell: Callable[[str], None] | None = None
) -> Worded:
    told: list[str] = []
    made = word(answer, engine.terms, there, seconds, 2000, tell or told.append)
    assert tell or made.text == "\n".join(told)
    return made


def line(one: Numbered) -> str:
    return f"{one.said} [{one.id}]\n"


def given(asked: Asked) -> list[dict[str, str]]:
    """The claims that the model was given."""
    return [json.loads(one) for one in asked.section("claims").split("\n")]


def honest(asked: Asked) -> str:
    """The first claim of each section, word for word."""
    firsts = {one["section"]: one for one in reversed(given(asked))}
    return "".join(f"{one['text']} [{one['id']}]\n" for one in reversed(firsts.values()))


GOOD = Streamed(honest)


@pytest.fixture(scope="module")
def softmax(built_home: Path) -> Iterator[tuple[Engine, Answer]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KOPT_HOME", str(built_home))
        from kopt.services.settings import load_settings

        engine = Engine(load_settings(workspace=built_home))
        yield engine, ask(engine, TITLE)


# --- an honest model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_an_honest_answer_is_told_with_its_sources(softmax: tuple[Engine, Answer], form: str) -> None:
    engine, answer = softmax
    with model_server(GOOD) as server:
        made = worded(engine, answer, to(server, form))
    assert (made.status, made.why, made.left_out.total()) == ("worded", "", 0)
    assert (made.input_tokens, made.output_tokens) == TOKENS
    lines = made.text.split("\n")
    assert lines[0].startswith(answer.direct)
    assert lines[0].endswith("]")
    sections = [section.title for section in answer.sections if section.title]
    assert [one for one in lines if one in sections] == sections
    assert "Not known" in lines
    assert lines[-1] == (
        f"Ordered by {form}:m-1 from {len(sections) + 1} of {len(answer.claims)} claims; each sentence was checked"
        " against them."
    )
    checked = check_text(made.text, engine.library, engine.terms)
    assert len(checked) > 5
    assert all(one.status is Status.OK for one in checked)


@pytest.mark.parametrize("form", FORMS)
def test_a_service_without_events_is_read_as_well(softmax: tuple[Engine, Answer], form: str) -> None:
    engine, answer = softmax
    with model_server(service.well(honest)) as server:
        made = worded(engine, answer, to(server, form))
    assert (made.status, made.input_tokens) == ("worded", TOKENS[0])


def test_what_the_model_is_given_is_fenced_and_holds_no_key(softmax: tuple[Engine, Answer]) -> None:
    engine, answer = softmax
    with model_server(GOOD) as server:
        worded(engine, answer, to(server))
        [asked] = server.seen
    assert asked.section("question") == TITLE
    assert [one["id"] for one in given(asked)] == [f"c{n}" for n in range(1, len(answer.claims) + 1)]
    assert KEY not in json.dumps(asked.body)
    assert asked.body["stream"] is True


def test_a_sentence_is_told_as_soon_as_it_has_passed(softmax: tuple[Engine, Answer]) -> None:
    """The model writes the second sentence only after the first was told."""
    engine, answer = softmax
    first, second, *_ = numbered(answer)
    heard = threading.Event()

    def write(asked: Asked) -> str:
        return line(first)

    class Waiting(Streamed):
        def __call__(self, call: service.Call) -> None:
            super().__call__(call)
            assert heard.wait(10)
            more = {"choices": [{"index": 0, "delta": {"content": line(second)}, "finish_reason": "stop"}]}
            call.write(f"data: {json.dumps(more)}\n\ndata: [DONE]\n\n".encode())

    with model_server(Waiting(write, marked=False)) as server:
        made = worded(engine, answer, to(server), tell=lambda _: heard.set())
    assert [kept.claims[0].id for kept in made.sentences] == ["c1", "c2"]


def test_another_order_is_told_after_the_direct_answer(softmax: tuple[Engine, Answer]) -> None:
    engine, answer = softmax
    last = numbered(answer)[-1]
    with model_server(Streamed(lambda _: line(last))) as server:
        made = worded(engine, answer, to(server))
    assert made.status == "worded"
    assert made.text.startswith(answer.direct)
    assert last.said in made.text


def test_what_was_read_otherwise_stands_above(softmax: tuple[Engine, Answer]) -> None:
    engine, _ = softmax
    answer = ask(engine, "compare the memory bandwidht of H100 SXM and H100 PCIe")
    assert not answer.abstained
    assert answer.read
    with model_server(GOOD) as server:
        made = worded(engine, answer, to(server))
    assert made.status == "worded"
    assert made.text.split("\n")[:3] == [f"({answer.read[0]})", "", made.text.split("\n")[2]]
    assert made.text.split("\n")[2].startswith(answer.direct.rstrip("."))


def test_what_is_no_answer_is_not_put_into_words(softmax: tuple[Engine, Answer]) -> None:
    engine, _ = softmax
    answer = ask(engine, "Is 1979 TFLOPS the dense BF16 peak of the H100 SXM?")
    assert answer.abstained
    with model_server(GOOD) as server:
        made = worded(engine, answer, to(server))
        assert not server.seen
    assert made.status == "not_asked"
    assert made.text.startswith(answer_text(answer))


# --- a model that lies ------------------------------------------------------------------------------------------------

EACH = 6
"""Lies of each kind: 270 in all."""


@pytest.mark.slow
def test_of_270_lies_about_claims_of_the_wiki_none_is_told(softmax: tuple[Engine, Answer]) -> None:
    engine, _ = softmax
    rng = random.Random(17)
    asked = [json.loads(one)["ask"] for one in QUESTIONS.read_text("utf-8").splitlines()]
    found = [one for one in (ask(engine, text) for text in asked[::2]) if len(one.claims) > 2 and not one.abstained]
    assert len(found) > 15
    told, through = [], []
    now: dict[str, str] = {}
    with model_server(Streamed(lambda _: now["text"], size=400)) as server:
        for how in EACH * list(LIES):
            for answer in rng.sample(found, len(found)):
                ones = numbered(answer)
                made = lie(how, [Fact(one.id, one.section, one.said) for one in ones], rng)
                if made:
                    break
            else:
                raise AssertionError(f"no answer about which one can lie by {how}")
            before = line(ones[0]) if rng.random() < 0.8 else ""
            now["text"] = f"{before}{made.line}\n{line(ones[0])}"
            told.append(made)
            if _reached(made, worded(engine, answer, to(server)), answer, ones[0]):
                through.append(made)
    assert len({one.line for one in told}) > 200
    assert not through


def _reached(lied: Lie, made: Worded, answer: Answer, first: Numbered) -> bool:
    """Whether a lie, or anything but the direct answer and what kopt says itself, was told."""
    own = first.said.rstrip(".")
    kept = [one.text.rstrip(".") for one in made.sentences]
    return kept not in ([], [own]) or (
        lied.sentence in made.text and lied.sentence not in answer_text(answer, long=True)
    )


def test_a_lie_in_the_direct_answer_leaves_the_one_without_a_model(softmax: tuple[Engine, Answer]) -> None:
    engine, answer = softmax
    wrong = answer.direct.replace("0.625", "6.25")
    with model_server(Streamed(lambda _: f"{wrong} [c1]\n{honest(_)}")) as server:
        made = worded(engine, answer, to(server))
    assert made.status == "withdrawn"
    assert made.text.startswith(answer_text(answer))
    assert "6.25" not in made.text
    assert made.text.endswith("did not pass the check: it has a number that its claims do not have.")


def test_too_many_lies_withdraw_what_was_told(softmax: tuple[Engine, Answer]) -> None:
    engine, answer = softmax
    with model_server(Streamed(lambda _: f"{answer.direct} [c1]\nIt is fast. [c2]\nIt is best. [c3]\n")) as server:
        made = worded(engine, answer, to(server))
    assert made.status == "withdrawn"
    assert "\nThe model's sentences end here: 2 of its 3 sentences did not pass the check. The answer" in made.text
    assert made.text.endswith(answer_text(answer))
    assert "fast" not in made.text.split("The answer without it")[0].splitlines()[-3]


def test_what_is_left_out_is_counted_with_its_reasons(softmax: tuple[Engine, Answer]) -> None:
    engine, answer = softmax
    lied = "Softmax is 10x faster. [c1]\nIt is never slow. [c2]\n"
    with model_server(Streamed(lambda asked: honest(asked) + lied)) as server:
        made = worded(engine, answer, to(server))
    assert made.status == "worded"
    assert (
        "2 sentences of the model left out: 1 because it has a number that its claims do not have; 1 because it says no"
        in made.text
    )


# --- a service that fails ---------------------------------------------------------------------------------------------


def _chunk(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"


def drip(call: service.Call) -> None:
    """A character now and then, for ever: each comes in time."""
    call.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    while not call.stopping.wait(0.02):
        call.write(_chunk("M"))


def flood(call: service.Call) -> None:
    """Ten megabytes of one sentence."""
    call.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    for _ in range(160):
        call.write(_chunk("word " * 13_000))


FAILURES: dict[str, tuple[service.Reaction, str]] = {
    "empty": (Streamed(lambda _: ""), "it wrote no sentence"),
    "no events": (service.raw_stream(), "the connection ended before the answer did"),
    "no claim": (Streamed(lambda _: "The kernel is slow.\nBuy a faster one.\n"), "none of its sentences passed"),
    "a flood": (flood, "it wrote"),
    "a flood of lines": (Streamed(lambda _: "a\n" * 500), "it wrote more than 60 lines"),
    "garbage": (service.raw_stream(b"\x00\xff\xfe" * 999, b"\n"), "it wrote no events of its form"),
    "a page": (service.raw_stream(b"<html><body>502</body></html>\n"), "it wrote no events of its form"),
    "broken JSON": (service.raw_stream(b'data: {"choices": [{"delta": \n\n'), "an event that cannot be read"),
    "another form": (service.raw_stream(b'data: {"text": "hello"}\n\n'), "an event that cannot be read"),
    "deep JSON": (service.raw_stream(b"data: " + b"[" * 100_000 + b"\n\n"), "an event that cannot be read"),
    "no UTF-8": (service.raw_stream(b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n'), "cannot be read"),
    "a document of another form": (service.status(200, '{"answer": 42}'), "no answer of its form"),
    "hangs up": (service.hang_up, "the connection ended"),
    "hangs up in the first sentence": (Streamed(honest, until=60), "the connection ended before the answer did"),
    "declines": (Streamed(lambda _: "I will not.", ended="refused"), "the model declined"),
    "no token left": (Streamed(lambda _: "Memory", ended="cut"), "it had more tokens than it may have"),
    "says nothing": (service.late, "it had not ended within 0.6 s"),
    "drips": (drip, "it had not ended within 0.6 s"),
    "headers for ever": (service.late_headers, "it had not ended within 0.6 s"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_an_answer_stands_whatever_the_service_does(softmax: tuple[Engine, Answer], name: str) -> None:
    engine, answer = softmax
    reaction, why = FAILURES[name]
    started = time.monotonic()
    with model_server(reaction) as server:
        made = worded(engine, answer, to(server), seconds=0.6 if "0.6 s" in why else 20)
    assert time.monotonic() - started < 8
    assert made.status in ("failed", "withdrawn")
    assert why in made.why
    assert made.text == f"{answer_text(answer)}\n\nWithout the model: {made.why}."


@pytest.mark.parametrize(
    ("reaction", "sends", "kind", "code"),
    [
        (service.status(500, "oops"), 2, KoptError, "model_unavailable"),
        (service.status(429, headers={"Retry-After": "60"}), 1, KoptError, "model_unavailable"),
        (service.status(400, "no stream_options"), 1, KoptError, "model_request_refused"),
        (service.status(401, "no such key: {key}"), 1, ConfigurationError, "model_key_refused"),
        (service.status(404), 1, ConfigurationError, "model_unknown"),
        (service.status(302, headers={"Location": "http://127.0.0.1:1/"}), 1, ConfigurationError, "model_redirected"),
    ],
)
def test_a_service_that_refuses_is_an_error_beside_the_answer(
    softmax: tuple[Engine, Answer], reaction: service.Reaction, sends: int, kind: type[KoptError], code: str
) -> None:
    engine, answer = softmax
    with model_server(reaction) as server:
        made = worded(engine, answer, to(server))
        assert len(server.seen) == sends
    assert isinstance(made.error, kind)
    assert (made.error.code, made.status) == (code, "failed")
    assert made.text.startswith(answer_text(answer))
    assert KEY not in made.text + made.error.message


def test_a_busy_service_is_asked_once_more(softmax: tuple[Engine, Answer]) -> None:
    engine, answer = softmax
    with model_server(service.status(503), GOOD) as server:
        assert worded(engine, answer, to(server)).status == "worded"


def test_a_service_that_is_not_there_is_an_error(softmax: tuple[Engine, Answer]) -> None:
    engine, answer = softmax
    made = worded(engine, answer, Service("openai", "m-1", Access(f"http://127.0.0.1:{closed_port()}/v1", KEY, "KEY")))
    assert made.error
    assert made.error.code == "model_unavailable"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ["hang up", "cut", "drip"])
def test_whole_sentences_stay_where_the_answer_breaks_off(softmax: tuple[Engine, Answer], form: str, how: str) -> None:
    engine, answer = softmax
    ones = numbered(answer)
    text = line(ones[0]) + line(ones[1]) + line(ones[2])
    here = len(line(ones[0]) + line(ones[1])) + 20
    reaction = {
        "hang up": Streamed(lambda _: text, until=here),
        "cut": Streamed(lambda _: text[:here], ended="cut"),
        "drip": Streamed(lambda _: text + "x" * 4000, size=90, pause=0.04),
    }[how]
    with model_server(reaction) as server:
        made = worded(engine, answer, to(server, form), seconds=1.5 if how == "drip" else 20)
    assert made.status == "worded"
    assert [kept.claims[0].id for kept in made.sentences][:2] == ["c1", "c2"]
    assert f"The model's answer is not whole: {made.why}.\n" in made.text
    assert made.why
