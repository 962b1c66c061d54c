"""Whatever JSON can say comes back as it went in, the order of keys and the kinds of numbers included."""

from __future__ import annotations

from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amplifier.testing.postgres import PostgresServer
from amplifier_module_store_postgres import open_store
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.stores import LogEntry, SessionLog, StoredQuestion

pytestmark = pytest.mark.process

# halves of characters and U+0000 as well: a model or a tool may write them
TEXTS = st.text(st.characters())
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
VALUES: st.SearchStrategy[JSONValue] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)
TIMES = st.floats(min_value=0, max_value=253_402_300_799)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.dictionaries(TEXTS, VALUES, max_size=5), at=TIMES, document=st.binary())
async def test_what_is_stored_comes_back(
    server: PostgresServer, data: dict[str, JSONValue], at: float, document: bytes
) -> None:
    record: JSONObject = {**data, "session_id": "s1"}
    log = SessionLog(entries=(LogEntry(kind="odd", data=data, at=at),), began=at)
    asked = StoredQuestion(
        question_id="q1", session_id="s1", prompt="?", options=(), details=data
    )
    store = await open_store(server.url(), namespace=uuid4().hex)
    try:
        lease = await store.acquire("s1", owner="worker 1", period=60)
        await store.write_record(lease, record)
        await store.replace(lease, "journal", log)
        await store.write_document(lease, "a", document)
        await store.ask(lease, asked)

        # the text: of equal values, `1` and `1.0` and `True` differ there, and the order of keys counts
        assert repr(await store.read_record("s1")) == repr(record)
        assert repr(await store.read_log("s1", "journal")) == repr(log)
        assert dict(await store.read_documents("s1")) == {"a": document}
        (question,) = await store.questions("s1")
        assert repr(dict(question.details)) == repr(data)
    finally:
        await store.aclose()
