"""`Headers`: the ADR-4 operations by vector, the mapping it is, and the bytes it keeps."""

import copy
import json
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeaderError
from headwater.model.headers import Headers

Vector = dict[str, Any]
VECTORS: list[Vector] = json.loads((Path(__file__).parents[1] / "vectors" / "headers.json").read_bytes())["vectors"]
BLOCK = b"NATS/1.0\r\nA:  1 \r\nb: 2\r\nA: 3\r\n\r\n"


def perform(headers: Headers, whole: Headers, step: list[str]) -> str | list[str] | None:
    match step:
        case ["get", name]:
            return headers.first(name)
        case ["values", name]:
            return headers.get_all(name)
        case ["values_cs", name]:
            return whole.get_all(name)
        case ["keys"]:
            return list(headers)
        case ["set", name, value]:
            headers[name] = value
        case ["append", name, value]:
            headers.append(name, value)
        case ["delete", name]:
            headers.discard(name)
        case _:
            raise AssertionError(step)
    return None


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in VECTORS if v["op"] == "ops"])
def test_operations_give_what_their_vector_says(vector: Vector) -> None:
    whole = Headers([(name, value) for name, value in vector["start"]])
    view = {"case_sensitive": whole, "case_insensitive": whole.ignore_case, "canonical": whole.canonical}
    headers = view[vector["mode"]]
    assert [perform(headers, whole, step) for step in vector["steps"]] == vector["expected"]


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in VECTORS if v["op"] == "ops"])
def test_operations_on_headers_of_a_block_give_the_same(vector: Vector) -> None:
    start = bytes(Headers([(name, value) for name, value in vector["start"]]))
    whole = Headers.parse(start)
    view = {"case_sensitive": whole, "case_insensitive": whole.ignore_case, "canonical": whole.canonical}
    steps = [perform(view[vector["mode"]], whole, step) for step in vector["steps"]]
    assert steps == vector["expected"]


# making


def test_headers_are_made_from_mappings_lists_pairs_and_keywords() -> None:
    wanted = [("a", "1"), ("a", "2"), ("b", "3")]
    assert Headers({"a": ["1", "2"], "b": "3"}).multi_items() == wanted
    assert Headers(wanted).multi_items() == wanted
    assert Headers(iter(wanted)).multi_items() == wanted
    assert Headers(Headers(wanted)).multi_items() == wanted
    assert Headers(a="1", b="3").multi_items() == [("a", "1"), ("b", "3")]
    assert not Headers()


def test_bytes_value_is_utf8_and_other_bytes_survive() -> None:
    headers = Headers({"a": "é".encode(), "b": b"\xff"})
    assert headers["a"] == "é"
    assert bytes(headers).endswith(b"b: \xff\r\n\r\n")


def test_escaped_bytes_that_form_a_character_are_held_as_it_will_be_read() -> None:
    assert Headers(a="\udcc3\udca9")["a"] == "é"


@pytest.mark.parametrize("value", [1, 1.5, True, None, [1]])
def test_value_that_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(HeaderError, match="a value is str or bytes"):
        Headers({"A": value})


@pytest.mark.parametrize("name", ["", " ", "A B", "A:B", "A\r\nB", "é", "A\x7f", "A\n", 5])
def test_name_that_cannot_be_written_is_refused_everywhere(name: Any) -> None:
    headers = Headers(a="1")
    for change in (
        lambda: headers.append(name, "x"),
        lambda: headers.__setitem__(name, "x"),
        lambda: headers.ignore_case.append(name, "x"),
        lambda: headers.canonical.append(name, "x"),
        lambda: Headers([(name, "x")]),
    ):
        with pytest.raises(HeaderError, match="header name"):
            change()
    assert headers == {"a": "1"}


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\r\nB: injected", "\n", b"a\nb", "\ud800"])
def test_value_that_would_break_the_block_is_refused_with_its_key(value: str) -> None:
    headers = Headers(a="1")
    with pytest.raises(HeaderError) as caught:
        headers["Key"] = value
    assert caught.value.key == "Key"
    assert headers == {"a": "1"}


def test_refused_value_leaves_the_old_ones_in_place() -> None:
    headers = Headers(a="1")
    with pytest.raises(HeaderError):
        headers["a"] = ["2", "3\n"]
    assert headers.get_all("a") == ["1"]


# the mapping


def test_mapping_shows_each_name_once_with_its_first_value() -> None:
    headers = Headers.parse(BLOCK)
    assert (len(headers), list(headers), dict(headers)) == (2, ["A", "b"], {"A": "1", "b": "2"})
    assert list(headers.items()) == [("A", "1"), ("b", "2")]
    assert list(headers.values()) == ["1", "2"]
    assert headers.multi_items() == [("A", "1"), ("b", "2"), ("A", "3")]


def test_missing_name_is_none_or_empty_or_a_key_error_as_asked() -> None:
    headers = Headers.parse(BLOCK)
    assert headers.get("B") is None
    assert headers.get("B", "x") == "x"
    assert headers.first("B") == ""
    assert headers.get_all("B") == []
    assert "B" not in headers
    assert 5 not in headers  # type: ignore[comparison-overlap]
    with pytest.raises(KeyError, match="B"):
        headers["B"]
    with pytest.raises(KeyError, match="B"):
        del headers["B"]
    headers.discard("B")
    assert bytes(headers) == BLOCK


def test_empty_value_is_a_value() -> None:
    headers = Headers(a="")
    assert "a" in headers
    assert headers["a"] == ""
    assert bytes(headers) == b"NATS/1.0\r\na: \r\n\r\n"


def test_set_replaces_every_value_and_pop_takes_every_value() -> None:
    headers = Headers.parse(BLOCK)
    headers["A"] = ["x", "y"]
    assert headers.multi_items() == [("b", "2"), ("A", "x"), ("A", "y")]
    assert headers.pop("A") == "x"
    assert headers.setdefault("c", "4") == "4"
    assert headers.multi_items() == [("b", "2"), ("c", "4")]
    headers.extend("b", ["5", "6"])
    assert headers.get_all("b") == ["2", "5", "6"]
    headers.clear()
    assert not headers


def test_union_sets_names_of_the_right_side_with_all_their_values() -> None:
    left, right = Headers([("a", "1"), ("a", "2"), ("b", "3")]), Headers([("a", "4"), ("a", "5")])
    assert (left | right).multi_items() == [("b", "3"), ("a", "4"), ("a", "5")]
    assert ({"a": "0", "c": "1"} | left).multi_items() == [("c", "1"), ("a", "1"), ("a", "2"), ("b", "3")]
    assert left.multi_items() == [("a", "1"), ("a", "2"), ("b", "3")]
    left |= {"b": "9"}
    left.update([("c", "1"), ("c", "2")], d="3")
    assert left == {"a": ["1", "2"], "b": "9", "c": ["1", "2"], "d": "3"}


def test_equality_counts_the_order_of_values_but_not_of_names() -> None:
    assert Headers([("a", "1"), ("b", "2"), ("a", "3")]) == Headers([("b", "2"), ("a", "1"), ("a", "3")])
    assert Headers([("a", "1"), ("a", "3")]) != Headers([("a", "3"), ("a", "1")])
    assert Headers(a="1") != Headers(A="1")
    assert Headers(a="1") == {"a": ["1"]}
    assert Headers(a="1") != [("a", "1")]
    with pytest.raises(TypeError, match="unhashable"):
        hash(Headers())


# bytes


def test_untouched_headers_are_written_byte_for_byte_after_every_kind_of_look() -> None:
    headers = Headers.parse(BLOCK)
    assert headers.raw == BLOCK
    assert (headers["A"], "b" in headers, len(headers), headers.get_all("A")) == ("1", True, 2, ["1", "3"])
    assert bytes(headers) == bytes(headers.copy()) == BLOCK
    headers.append("c", "4")
    assert headers.raw is None
    assert bytes(headers) == b"NATS/1.0\r\nA: 1\r\nb: 2\r\nA: 3\r\nc: 4\r\n\r\n"


def test_copies_are_independent_and_headers_survive_pickling() -> None:
    headers = Headers.parse(BLOCK)
    for twin in (headers.copy(), copy.copy(headers), copy.deepcopy(headers), pickle.loads(pickle.dumps(headers))):
        assert twin == headers
        assert twin.raw == BLOCK
        twin["A"] = "changed"
    assert bytes(headers) == BLOCK


def test_lists_handed_out_are_not_the_headers_themselves() -> None:
    headers = Headers.parse(BLOCK)
    headers.get_all("A").append("x")
    headers.multi_items().clear()
    assert headers.get_all("A") == ["1", "3"]


# views


def test_views_are_live_both_ways() -> None:
    headers = Headers()
    view = headers.ignore_case
    headers.append("X-Key", "1")
    view.append("x-key", "2")
    assert headers.get_all("X-Key") == view.get_all("X-KEY") == ["1", "2"]
    del view["x-KEY"]
    assert not headers


def test_case_insensitive_view_shows_every_spelling_and_finds_all_by_any() -> None:
    view = Headers([("a-b", "1"), ("A-B", "2"), ("c", "3")]).ignore_case
    assert (list(view), view["A-B"], view["A-b"]) == (["a-b", "A-B", "c"], "1", "1")


def test_headers_made_case_insensitive_append_to_the_first_spelling() -> None:
    headers = Headers([("a-b", "1"), ("A-B", "2"), ("c", "3")], ignore_case=True)
    assert headers.multi_items() == [("a-b", "1"), ("a-b", "2"), ("c", "3")]


def test_canonical_view_shows_only_names_that_it_can_find() -> None:
    view = Headers([("a-b", "1"), ("A-B", "2"), ("a/b", "3")]).canonical
    assert dict(view) == {"A-B": "2", "a/b": "3"}


def test_only_ascii_is_folded() -> None:
    headers = Headers(k="1", S="2")
    assert "\u212a" not in headers.ignore_case
    assert "\u017f" not in headers.canonical


# repr


def test_repr_cuts_what_is_long_and_hides_what_looks_like_a_credential() -> None:
    headers = Headers({"Authorization": "Bearer abc", "X-Api-Key": "abc", "Long": "x" * 1000, "A": "1"})
    shown = repr(headers)
    assert shown.startswith("Headers([('Authorization', '***'), ('X-Api-Key', '***'), ('Long', 'xxx")
    assert shown.endswith("('A', '1')])")
    assert "abc" not in shown
    assert len(shown) < 250
    assert "… 4 more" in repr(Headers([("n", str(i)) for i in range(20)]))


# laws

some_names = st.sampled_from(["a", "A", "a-b", "A-B", "A-b", "x"])
some_values = st.sampled_from(["", "1", "2", "é"])
changes = st.lists(
    st.tuples(st.sampled_from(["set", "append", "delete"]), st.integers(0, 2), some_names, some_values), max_size=12
)


@given(st.lists(st.tuples(some_names, some_values), max_size=6), changes)
def test_every_view_stays_a_mapping_whatever_is_done_to_it(
    start: list[tuple[str, str]], steps: list[tuple[str, int, str, str]]
) -> None:
    whole = Headers(start)
    views = [whole, whole.ignore_case, whole.canonical]
    for verb, which, name, value in steps:
        perform(views[which], whole, [verb, name] if verb == "delete" else [verb, name, value])
        if verb == "set":
            assert views[which].get_all(name) == [value]
        elif verb == "append":
            assert views[which].get_all(name).count(value) >= 1
        else:
            assert name not in views[which]
    for view in views:
        assert isinstance(view, Mapping)
        assert len(view) == len(list(view)) == len(dict(view))
        assert all(view[name] == view.get_all(name)[0] for name in view)
    assert Headers.parse(bytes(whole)) == whole


# many of them


@pytest.mark.timeout(60)  # a search for each name from the first line on takes minutes: that is a hang
@pytest.mark.parametrize("view", ["exact", "ignore_case"])
def test_headers_of_130_000_names_are_read_and_set(view: str) -> None:
    block = b"NATS/1.0\r\n" + b"".join(b"n%d:%d\r\n" % (number, number) for number in range(130_000)) + b"\r\n"
    whole = Headers.parse(block)
    headers = whole if view == "exact" else whole.ignore_case
    assert sum(int(value) for _, value in headers.items()) == sum(range(130_000))
    for number in range(0, 130_000, 2):
        headers[f"n{number}"] = "new"
    assert (len(headers), headers["n0"], headers["n1"]) == (130_000, "new", "1")
    assert list(headers)[-1] == "n129998"


def test_a_view_refuses_a_name_that_is_no_text_by_name() -> None:
    headers = Headers({"a": "1"})
    for view in (headers.ignore_case, headers.canonical):
        wrong: Any = view
        for attempt in (wrong.get, wrong.get_all, wrong.discard, wrong.__getitem__):
            with pytest.raises(HeaderError, match="a header name is a str, not int"):
                attempt(5)
    assert headers == Headers({"a": "1"})


@pytest.mark.parametrize(
    ("name", "ours"),
    [("add", "headers.append(name, value)"), ("getlist", "headers.get_all(name)"), ("set", "headers[name] = value")],
)
def test_methods_of_other_libraries_headers_are_mapped_to_ours(name: str, ours: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"no attribute '{name}'; it is `{ours}` here")):
        getattr(Headers(), name)
    assert not hasattr(Headers(), "anything")
