"""The cost of a user's question: in words, by `Authority.decide`, and prepared, by `Prepared.decide`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.built import Built
from bench.plans import Ask
from bench.report import Section, Target, duration
from bench.timing import quiet, seconds_of, warmed
from bench.worlds import ask_http, ask_some, generate, with_paths
from eastgate.authority.authority import Authority
from eastgate.authority.deciding import Prepared
from eastgate.authority.questions import Question
from eastgate.authority.reading import Manifests
from eastgate.cluster import Pod
from eastgate.settings import Settings

__all__ = ["run"]

_MAX_WORDS_NS, _MAX_PREPARED_NS = 5_000, 600
_ROUNDS = 100
_ELSEWHERE = Pod("elsewhere", "new")


def run(*, quick: bool) -> Section:
    """Measure connections in worlds of two sizes, and requests to one workload."""
    rounds = 3 if quick else _ROUNDS
    section = Section(
        "Questions in words, and prepared",
        "One question through the public API, the best of several rounds over different questions. words: a Question "
        "by Authority.decide, with ends and path seen before. built: the same, and making the Question. prepared: "
        "by Prepared.decide, again, with nothing changed. bulk: prepared ones by Authority.decide_all. changed: by "
        "Prepared.decide, for the first time after a pod was added elsewhere. engine: a request that was built before, "
        "by Engine.decide, which evaluates each time and returns a number, not a Decision.",
        ("world", "questions", "words", "built", "prepared", "bulk", "changed", "engine"),
    )
    worlds: list[tuple[str, Built, list[Ask]]] = []
    for policies in (10, 1_000):
        built = Built.of(generate(policies))
        worlds.append((f"{policies:,} policies", built, ask_some(built.plan, built.targeted, 1_000)))
    requests = Built.of(with_paths(100))
    worlds.append(("requests, 100 rules", requests, ask_http(requests.plan, 1_000)))
    for name, built, asks in worlds:
        took = _measure(built, asks, rounds)
        section.rows.append([name, len(asks), *map(duration, took)])
        section.points.append({"world": name, "ns": dict(zip(section.columns[2:], took, strict=True))})
        section.targets += [
            Target(f"{name}: under {duration(_MAX_WORDS_NS)} in words", duration(took[0]), took[0] < _MAX_WORDS_NS),
            Target(
                f"{name}: under {duration(_MAX_PREPARED_NS)} prepared", duration(took[2]), took[2] < _MAX_PREPARED_NS
            ),
        ]
    return section


def _measure(built: Built, asks: Sequence[Ask], rounds: int) -> list[float]:
    """Return the nanoseconds of a question for each column."""
    authority = Authority(Manifests(Settings(), [*built.plan.pods, *built.plan.services], built.policies))
    questions = [_question(ask) for ask in asks]
    prepared = [authority.prepare(question) for question in questions]
    requests = built.questions(asks)
    verdicts = [built.engine.decide(point, request) & 1 == 1 for point, request in requests]
    if not [authority.decide(question).allowed for question in questions] == _allowed(prepared) == verdicts:
        raise AssertionError("answers differ")

    def words() -> None:
        for question in questions:
            authority.decide(question)

    def made() -> None:
        for ask in asks:
            authority.decide(_question(ask))

    def ready() -> None:
        for question in prepared:
            question.decide()

    def bulk() -> None:
        authority.decide_all(prepared)

    def engine() -> None:
        decide = built.engine.decide
        for point, request in requests:
            decide(point, request)

    def after_change() -> float:
        authority.update(put=[_ELSEWHERE])
        return seconds_of(ready)

    works: tuple[Callable[[], None], ...] = (words, made, ready, bulk, engine)
    with quiet():
        taken = [[warmed(work) for work in works] for _ in range(rounds)]
        changed = [after_change() for _ in range(rounds)]  # separate rounds: these leave garbage behind
    *others, evaluated = [min(column) for column in zip(*taken, strict=True)]
    return [seconds / len(asks) * 1e9 for seconds in (*others, min(changed), evaluated)]


def _allowed(questions: Sequence[Prepared]) -> list[bool]:
    return [question.decide().allowed for question in questions]


def _question(ask: Ask) -> Question:
    return Question.of(
        ask.identity or "anonymous", f"pod:{ask.workload}", port=ask.port, method=ask.method, path=ask.path
    )
