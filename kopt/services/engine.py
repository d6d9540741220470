"""Settings, wikis, index and search, wired together for everything that reads knowledge."""

from __future__ import annotations

import json
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ingest.progress import Progress, UpdateResult, no_progress
from ingest.update import Index
from kbs.answers.knowledge import Knowledge
from kbs.common.errors import ConfigurationError, IndexBusyError, KoptError
from kbs.common.files import make_folder, write_whole
from kbs.evidence.citation import NOTES, Citation
from kbs.evidence.passage import LOG
from kbs.evidence.spec import Spec
from kbs.evidence.vocabulary import Product, Vocabulary, is_capability, vocabulary
from kbs.index.chroma import VectorIndexError
from kbs.index.chroma_server import Server
from kbs.index.encoder import (
    DEFAULT_MODEL,
    DefaultEncoder,
    Encoder,
    ModelError,
    Vectors,
    default_identity,
    open_encoder,
)
from kbs.index.overrides import override_notes
from kbs.index.search import Query, SearchResult, VectorQuery, search
from kbs.index.sections import SectionResult, find_sections
from kbs.index.sqlite_file import DamagedIndexError, damaged
from kbs.index.store import Store
from kbs.questions.question import Question, understand
from kopt.services.settings import WORKSPACE_FILE, LoadedSettings
from wiki.library import BUNDLED, Wiki, Wikis, bundled_wiki, check_names, open_wiki
from wiki.registry import REGISTRY, read_registry
from wiki.trust import resolved, trusted_folders

if TYPE_CHECKING:
    from kbs.experience.index import ExperienceIndex

GAPS = "gaps.jsonl"
_TRIES = 5
"""Times that an index which another command has changed to other wikis is brought back."""
T = TypeVar("T")


class _MovedError(Exception):
    """The vector index went on with an update that the open index does not know of: it is to be opened again."""


@dataclass
class Engine:
    """What every command that reads knowledge works with."""

    settings: LoadedSettings
    progress: Progress = no_progress
    warnings: list[str] = field(default_factory=list)
    """What the user should know of: a damaged index that was set aside, vectors that could not be used …"""
    left_out: list[str] = field(default_factory=list)
    """Those of the warnings that name wikis of the workspace which are not used."""
    run_notes: tuple[Wiki, ...] = ()
    """Notes that the user gave one run alone (`use_notes`)."""
    _last_try: bool = True

    @cached_property
    def index(self) -> Index:
        """The index under KOPT_HOME."""
        values = self.settings.values
        server = Server(
            values.chroma_url,
            values.chroma_tenant,
            values.chroma_database,
            values.chroma_token.get_secret_value(),
            {name: secret.get_secret_value() for name, secret in values.chroma_headers.items()},
        )
        return Index(self.settings.home, server if values.chroma_url else None)

    # --- wikis ------------------------------------------------------------------------------------------------------

    @cached_property
    def wikis(self) -> list[Wiki]:
        """The bundled wiki, what `kopt ingest` registered, wikis of the settings, those of the workspace that are
        trusted, then the notes of one run. Notes are among the registered and those of a run alone.

        Raises `ConfigurationError` (`wiki_name`) for two of one name, among others.
        """
        found = [bundled_wiki()]
        for name, root in self.registered().items():
            try:
                found.append(open_wiki(Path(root), name.removeprefix(NOTES), notes=name.startswith(NOTES)))
            except ConfigurationError as error:
                what = name if name.startswith(NOTES) else f"the wiki {name}"
                self.warnings.append(
                    f"{what} is left out: {error.message}. Forget it with `kopt ingest --forget {name}`."
                )
        for root in self.settings.values.wikis:
            wiki = open_wiki(Path(root))
            if wiki.root not in [known.root for known in found if not known.notes]:
                found.append(wiki)
        check_names(found)
        found += self._of_workspace(found)
        known = [(wiki.name, wiki.root) for wiki in found]
        found += [wiki for wiki in self.run_notes if (wiki.name, wiki.root) not in known]
        check_names(found)
        return found

    def use_notes(self, notes: Iterable[Wiki]) -> None:
        """Search these notes too, in this process alone. Raises `ConfigurationError` (`wiki_name`)."""
        self.run_notes = tuple(notes)
        if self.run_notes:
            self._forget_wikis()
            check_names(self.wikis)

    def _of_workspace(self, own: Sequence[Wiki]) -> list[Wiki]:
        """The wikis that the workspace names and that are trusted; each other one is a warning."""
        settings = self.settings
        found: list[Wiki] = []
        if not settings.workspace_wikis:
            return found
        trusted = trusted_folders(settings.home)
        for named in settings.workspace_wikis:
            folder = resolved(Path(named))
            if folder is not None and folder in [wiki.root for wiki in (*own, *found) if not wiki.notes]:
                continue
            shown = f"the wiki {named} that {settings.workspace / WORKSPACE_FILE} names is not used"
            if folder is None or not (settings.trusting or str(folder) in trusted):
                leads = f"; it leads to {folder}, which is not trusted" if folder and str(folder) != named else ""
                self._leave_out(
                    f"{shown}: a workspace may come from a stranger{leads}. If you trust it: `kopt wiki trust"
                    f" {shlex.quote(named)}`, or --trust for one command."
                )
                continue
            try:
                wiki = open_wiki(folder)
                check_names([*own, *found, wiki])
            except ConfigurationError as error:
                self._leave_out(f"{shown}: {error.message}. {error.hint}")
                continue
            found.append(wiki)
        return found

    def workspace_roots(self) -> list[Path]:
        """Where the wikis that the workspace names are now, trusted or not."""
        return [folder for named in self.settings.workspace_wikis if (folder := resolved(Path(named))) is not None]

    def _leave_out(self, warning: str) -> None:
        self.warn([warning])
        self.left_out += [] if warning in self.left_out else [warning]

    @cached_property
    def library(self) -> Wikis:
        """The wikis as files, for checking citations."""
        return Wikis(self.wikis, self.terms)

    @cached_property
    def terms(self) -> Vocabulary:
        """The vocabulary, and the products that the wikis' own pages declare."""
        declared: list[dict[str, Any]] = []
        with suppress(FileNotFoundError, DamagedIndexError, sqlite3.Error):
            held = self._declared()
            if held is None:
                self._refresh(vectors=False)
                held = self._declared()
            declared = held or []
        return _terms(declared)

    def _declared(self) -> list[dict[str, Any]] | None:
        """The products that the index has from the wikis' pages; None where it is of other wikis."""
        with self.index.open() as store, store.snapshot():
            return store.products() if self._holds_these(store) else None

    def registered(self) -> dict[str, str]:
        """name → folder of the wikis and notes that `kopt ingest PATH` added."""
        return read_registry(self.settings.home)

    def register(self, wiki: Wiki) -> None:
        """Remember a wiki, or notes, for all later commands. Notes come from here alone: no workspace brings any."""
        if wiki.name == BUNDLED:
            raise ConfigurationError(
                f"{BUNDLED} is the name of the bundled wiki", code="wiki_name", hint="Choose another with --name NAME."
            )
        self._write_registry({**self.registered(), wiki.name: str(wiki.root)})

    def forget(self, name: str) -> bool:
        """Forget a wiki, or else notes of that name; the folder is left alone."""
        known = self.registered()
        found = next((key for key in (name, NOTES + name) if key in known), None)
        if found is None:
            return False
        self._write_registry({key: root for key, root in known.items() if key != found})
        return True

    def _write_registry(self, content: Mapping[str, str]) -> None:
        make_folder(self.settings.home)
        write_whole(self.settings.home / REGISTRY, f"{json.dumps(content, indent=2)}\n".encode())
        self._forget_wikis()

    def _forget_wikis(self) -> None:
        """Look for the wikis anew when they are needed next."""
        self.__dict__.pop("wikis", None)
        self.__dict__.pop("library", None)

    # --- index ------------------------------------------------------------------------------------------------------

    def update(self, *, rebuild: bool = False, vectors: bool = True, timeout: float | None = None) -> UpdateResult:
        """Bring the index up to date, and say what is wrong with the model or Chroma."""
        encoder: Encoder | None = None
        if vectors:
            try:
                encoder = self._encoder("")
            except ModelError as error:
                self._without_model(error)
        wait = self.settings.values.lock_timeout if timeout is None else timeout

        with self._log() as (log, known):

            def update(encoder: Encoder | None) -> UpdateResult:
                return self.index.update(
                    *(self.wikis, vocabulary(), encoder),
                    log=log,
                    keep_records=not known,
                    rebuild=rebuild,
                    timeout=wait,
                    progress=self.progress,
                )

            try:
                result = update(encoder)
            except ModelError as error:
                self._without_model(error)
                encoder, result = None, update(None)
        self.__dict__.pop("terms", None)
        self.__dict__.pop("library", None)
        if result.set_aside is not None:
            self.warnings.append(f"the index was damaged; it was set aside as {result.set_aside} and built again")
        if result.degraded:
            self.warnings.append(f"degraded: {result.degraded}; vectors are compared one by one")
        if isinstance(encoder, DefaultEncoder):
            self.index.remember_model_file(encoder.file.stamp)
        return result

    def _without_model(self, error: ModelError) -> None:
        self.warnings.append(f"degraded: {error.message}; search works with words and specs alone. {error.hint}")

    def with_store(self, use: Callable[[Store], T], *, vectors: bool) -> T:
        """Call `use` with an index that is up to date; builds or repairs it first if needed."""
        refreshed = rebuilt = False
        for left in reversed(range(_TRIES + 1)):
            self._last_try = not left
            try:
                with self.index.open() as store, _damage(store), store.snapshot():
                    if self._holds_these(store) and (refreshed or self._is_fresh(store, vectors)):
                        if "terms" not in vars(self):
                            vars(self)["terms"] = _terms(store.products())  # they would open the index once more
                        return use(store)
            except _MovedError:
                continue
            except (DamagedIndexError, FileNotFoundError):
                if rebuilt:
                    raise
                if refreshed:
                    self.update(vectors=vectors, rebuild=True)
                    rebuilt = True
                    continue
            self._refresh(vectors)  # also later: a command in another workspace may have made it one of its own wikis
            refreshed = True
        raise IndexBusyError(
            "other commands keep changing the index to the wikis of other workspaces",
            code="index_busy",
            hint="Wait for them to end; then run the command again.",
        )

    def _holds_these(self, store: Store) -> bool:
        """Whether the index is of the wikis in use, and of none that only another workspace may use."""
        held = [one for one in store.wikis() if one[1] != LOG]
        return [name for name, *_ in held] == [wiki.name for wiki in self.wikis] and all(
            root == str(wiki.root) or revision == wiki.revision
            for (_, _, root, revision), wiki in zip(held, self.wikis, strict=True)
        )

    def specs(self) -> list[Spec]:
        """Every spec of the wikis."""
        return self.with_store(lambda store: store.specs(), vectors=False)

    def tell_overrides(self, cited: Iterable[Citation], missing: Iterable[tuple[str, str]] = ()) -> None:
        """Warn of what the cited lines take the place of; `missing`: (product, metric) that no page states."""
        if len(self.wikis) < 2:
            return
        wanted, absent = list(cited), list(missing)
        if wanted or absent:
            self.warn(self.with_store(lambda store: override_notes(store, self.terms, wanted, absent), vectors=False))

    def warn(self, warnings: Iterable[str]) -> None:
        """Add warnings that were not given yet."""
        self.warnings += [one for one in dict.fromkeys(warnings) if one not in self.warnings]

    def documented(self) -> list[str]:
        """The products that some page states a spec of, in the order of the vocabulary."""
        have = {spec.product for spec in self.specs()}
        return [product for product in self.terms.products if product in have]

    @contextmanager
    def _log(self) -> Iterator[tuple[ExperienceIndex | None, bool]]:
        """(the index of the experience log, None where there is none; whether that is known)."""
        with ExitStack() as stack:
            try:
                found = stack.enter_context(log_index(self.settings)), True
            except KoptError as error:
                self.warnings.append(f"the experience log could not be read: {error.message}")
                found = None, False
            yield found

    def _is_fresh(self, store: Store, vectors: bool) -> bool:
        mark = None
        if vectors:
            with self._log() as (log, known):
                mark = (log.changed("")[0] if log else "") if known else None
        return self.index.is_fresh(store, self.wikis, self.model_identity() if vectors else None, mark)

    def _refresh(self, vectors: bool) -> None:
        usable = False
        with suppress(FileNotFoundError, DamagedIndexError), self.index.open() as store, _damage(store):
            if self._is_fresh(store, vectors):
                return
            usable = self._holds_these(store) and bool(store.passage_count())
        try:
            self.update(vectors=vectors, timeout=0.0 if usable else None)
        except IndexBusyError as error:
            if not usable:
                raise
            self.warnings.append(f"{error.message}; this answer is from the index as it was before")
        except KoptError as error:
            if not usable or error.code != "not_writable":
                raise
            with self.index.open() as store:
                if not self.index.same_content(store, self.wikis):
                    self.warnings.append(
                        f"{error.message}, and the wikis have changed since; this answer is from the index as it was"
                    )

    def model_identity(self) -> str | None:
        """What the vectors of the index must be from; None where the model is missing, so that words must do."""
        if self.settings.values.embedding_model != DEFAULT_MODEL:
            return open_encoder(self.settings.values.embedding_model).identity
        return default_identity()

    def _encoder(self, trusted_stamp: str) -> Encoder:
        return open_encoder(self.settings.values.embedding_model, trusted_stamp)

    # --- questions --------------------------------------------------------------------------------------------------

    def search(self, store: Store, text: str, wanted: Query) -> SearchResult:
        """Search pages and records for a text."""
        return self.find(store, self.understood(store, text), wanted)

    def understood(self, store: Store, text: str, **more: Any) -> Question:
        """A question, read with what the index knows; `more` as for `understand`."""
        return understand(text, self.terms, known=self.known_words(store), **more)

    @staticmethod
    def known_words(store: Store) -> Callable[[str], bool]:
        """Whether the wikis have a word: it is no typing error then."""
        return lambda word: bool(store.word_frequency(word))

    def knowledge(self, store: Store) -> Knowledge:
        """The facts of the index, for looking them up one by one."""
        return Knowledge(
            store, self.terms, lambda question: self.find_sections(store, question, Query(count=1, records=0), 1)
        )

    def find(self, store: Store, question: Question, wanted: Query) -> SearchResult:
        """Search pages and records for a question that was understood: words and vectors, as `kbs.index.search` says.

        `wanted`: how many, and with which filters; what they are about comes from the question.
        """
        query, degraded = self._query(store, question, wanted)
        result = search(store, query, self.terms, store.meta("vector_model"), self._vector_query(store))
        result.degraded = [*degraded, *result.degraded]
        return result

    def find_sections(self, store: Store, question: Question, wanted: Query, count: int) -> SectionResult:
        """The `count` sections that fit a question best, and the passages that `find` gives, by one search."""
        query, degraded = self._query(store, question, wanted)
        model = store.meta("vector_model")
        result = find_sections(store, query, self.terms, model, self._vector_query(store), count)
        result.passages.degraded = [*degraded, *result.passages.degraded]
        return result

    def _query(self, store: Store, question: Question, wanted: Query) -> tuple[Query, list[str]]:
        """What to search for, with the vector of the question; and what cannot be used."""
        degraded: list[str] = []
        vector: Vectors | None = None
        identity = store.meta("vector_model")
        try:
            encoder = self._encoder(store.meta("model_stamp"))
            if identity and encoder.identity == identity:
                vector = encoder.encode([question.sought])[0]
            elif not any("degraded" in warning for warning in self.warnings):
                degraded.append("the index has no vectors of this model; run `kopt ingest`")
        except ModelError as error:
            degraded.append(f"{error.message}; search works with words and specs alone. {error.hint}")
        others: frozenset[str] = frozenset()
        if question.products:
            of = {self.terms.products[product].architecture for product in question.products}
            others = frozenset(
                id
                for id, product in self.terms.products.items()
                if id not in question.products and not (is_capability(id) and product.architecture in of)
            )
        query = replace(wanted, text=question.sought, vector=vector, names=question.names, other_products=others)
        return query, degraded

    def _vector_query(self, store: Store) -> VectorQuery:
        index, known = self.index.vectors(store), self.index.known(store)

        def ask(vector: Vectors, count: int, ids: Sequence[str] | None) -> list[tuple[str, float]]:
            if not store.meta("collection"):
                raise VectorIndexError(
                    "Chroma does not hold the index yet", code="chroma_missing_index", hint="Run `kopt ingest`."
                )
            try:
                return index.query(vector, count, known, ids)
            except VectorIndexError:
                if not self._last_try and self._moved(store):
                    raise _MovedError from None
                raise

        return ask

    def _moved(self, store: Store) -> bool:
        """Whether the index was changed since `store` was opened, and its vectors with it."""
        with self.index.open() as now:
            return any(now.meta(key) != store.meta(key) for key in ("collection", "vector_token", "vector_next"))

    def log_gap(self, asked: str, reason: str, gaps: Sequence[str]) -> None:
        """Remember what the wiki could not answer, for whoever curates it."""
        record = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "asked": asked,
            "reason": reason,
            "gaps": list(gaps),
        }
        line = json.dumps(record, ensure_ascii=False) + "\n"
        try:
            with (self.settings.home / GAPS).open("a", encoding="utf-8") as stream:
                stream.write(line)
        except OSError as error:
            self.warnings.append(f"the gap could not be logged: {error.strerror}")


def _terms(declared: Iterable[dict[str, Any]]) -> Vocabulary:
    return vocabulary().with_products(Product(**_tuples(product)) for product in declared)


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has lists where the vocabulary has tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}


@contextmanager
def log_index(settings: LoadedSettings) -> Iterator[ExperienceIndex | None]:
    """The index of the experience log, open and up to date; None where there are no records, neither the user's nor
    those that ship with kopt. Nothing is made or imported then."""
    if settings.base_log is None and not settings.log_folder.is_dir():
        yield None
        return
    from kbs.experience.files import LogFiles
    from kbs.experience.index import ExperienceIndex

    files = LogFiles(settings.log_folder, settings.base_log)
    if not files.every():
        yield None
        return
    with ExperienceIndex(files, settings.home) as index:
        yield index


@contextmanager
def _damage(store: Store) -> Iterator[None]:
    """Errors of a damaged file, wherever they surface, as the one error that has it rebuilt."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise damaged(store.path, str(error)) from error
