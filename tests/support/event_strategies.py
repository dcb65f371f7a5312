"""Hypothesis strategies for events, for the tests of `cloudevents`."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from headwater.cloudevents import CloudEvent, is_attribute_name
from headwater.cloudevents.attributes import CORE

strings = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]).filter(
        lambda c: ord(c) & 0xFFFE != 0xFFFE and not "\ufdd0" <= c <= "\ufdef"
    ),
    max_size=12,
)
nonempty = strings.filter(bool)
json_types = st.sampled_from(["application/json", "text/json; charset=utf-8", "Application/Vnd.X+JSON"])
other_types = st.sampled_from(["text/plain", "application/xml", "application/octet-stream"])
times = st.sampled_from(
    ["2018-04-05T03:56:24Z", "2016-12-31T23:59:60Z", "2020-02-29t00:00:00.123456789z", "1999-12-31T00:00:00-23:59"]
)
extension_names = st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True).filter(
    lambda name: name not in CORE and is_attribute_name(name)
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=6,
)
json_data = st.tuples(json_types, json_values.map(lambda value: msgspec.Raw(msgspec.json.encode(value))))
typed_data = st.one_of(
    st.tuples(st.none() | json_types | other_types, st.none() | st.binary(max_size=12)),
    st.tuples(other_types, strings),
    json_data,
)


def events(data: Any = typed_data, extension_values: Any = strings) -> st.SearchStrategy[CloudEvent]:
    return st.builds(
        lambda context, typed, extensions: CloudEvent(
            **context, datacontenttype=typed[0], data=typed[1], extensions=extensions, strict=False
        ),
        st.fixed_dictionaries(
            {"id": nonempty, "source": nonempty, "type": nonempty},
            optional={"subject": nonempty, "time": times, "dataschema": nonempty},
        ),
        data,
        st.dictionaries(extension_names, extension_values, max_size=3),
    )
