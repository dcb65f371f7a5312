"""Hypothesis strategies for typed headers and NATS headers, for the tests of the mapping between them."""

from hypothesis import strategies as st

from headwater import HeaderKey, HeaderKind, Headers, HeaderValue, TypedHeaders

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
awkward_keys = st.sampled_from(
    ["a", "a#2", "a#3", "a#2#2", "A", "key 1", "key%201", "%20", " ", "Iggy-Typed", "ä", "a%"]
)
names = st.sampled_from(["a", "A", "b", "Nats-Msg-Id", "ce-id", "x%20y"]) | st.from_regex(
    r"[!-9;-~]{1,8}", fullmatch=True
)


def _of_width(kind: HeaderKind) -> st.SearchStrategy[HeaderValue]:
    if kind is HeaderKind.STRING:
        return texts.map(HeaderValue.from_str)
    if kind is HeaderKind.BOOL:
        return st.booleans().map(HeaderValue.from_bool)
    width = kind.width
    return st.binary(min_size=width or 1, max_size=width or 20).map(lambda raw: HeaderValue(kind, raw))


values = st.sampled_from(HeaderKind).flatmap(_of_width)
wire_values = values | st.builds(HeaderValue.of_wire, st.sampled_from(HeaderKind), st.binary(min_size=1, max_size=20))
string_keys = (awkward_keys | texts).map(HeaderKey)
any_keys = string_keys | values.map(lambda value: HeaderKey(value.raw, value.kind))


def typed_headers(keys: str = "string", wire: bool = False) -> st.SearchStrategy[TypedHeaders]:
    """`keys`: "string", or "any" for typed keys too; `wire`: with values whose width is not that of their kind."""
    chosen = any_keys if keys == "any" else string_keys
    return st.dictionaries(chosen, wire_values if wire else values, max_size=6).map(TypedHeaders)


def nats_headers() -> st.SearchStrategy[Headers]:
    """Headers whose names end in no `#n` and are not the marker's, with values of characters: what maps without loss."""
    plain = names.filter(lambda name: "#" not in name and name != "Iggy-Typed")
    value = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=20)
    return st.lists(st.tuples(plain, value), max_size=6).map(Headers)
