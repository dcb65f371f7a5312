"""Documents as gauges, and values of one name with different labels."""

from headwater.monitoring.gauges import SLICE, Gauges, flatten

SERVER = {"server_id": "S"}


def test_numbers_are_named_by_their_path_and_some_texts_are_labels() -> None:
    gauges = Gauges()
    document = {"a": {"b_c": 2}, "on": True, "version": "2.15", "start": "1970-01-01T00:00:02Z", "note": "x"}
    flatten(gauges, "p", document, SERVER)
    found = {family.name: (family.samples[0].labels, family.samples[0].value) for family in gauges.collect()}
    assert found == {
        "p_a_b_c": (SERVER, 2),
        "p_version": ({**SERVER, "value": "2.15"}, 1),
        "p_start": (SERVER, 2.0),
    }


def test_one_name_may_have_values_with_more_labels_and_stays_one_family() -> None:
    gauges = Gauges()
    gauges.set("n", SERVER, 1)
    gauges.set("n", {**SERVER, "cid": "7"}, 2)
    (family,) = gauges.collect()
    assert [sample.labels for sample in family.samples] == [SERVER, {**SERVER, "cid": "7"}]


def test_many_values_come_in_parts() -> None:
    gauges = Gauges()
    for name in range(5):
        for value in range(SLICE):
            gauges.set(f"n{name}", {"v": str(value)}, value)
    assert [len(list(part.collect())) for part in gauges.parts()] == [1, 1, 1, 1, 1, 0]
