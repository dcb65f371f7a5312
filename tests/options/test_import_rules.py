"""Which imports are allowed, decided from the options alone."""

from headwater.options.access import AccountOptions, ExportOptions, ImportOptions
from headwater.options.import_rules import check_imports, export_for


def service(account: str, subject: str, to: str = "") -> ImportOptions:
    return ImportOptions(account=account, subject=subject, kind="service", to=to)


def chain(*names: str) -> list[AccountOptions]:
    """Each account imports the service "s" of the one before it, the first that of the last."""
    export = (ExportOptions(subject="s", kind="service"),)
    return [
        AccountOptions(name=name, exports=export, imports=(service(before, "s"),))
        for before, name in zip((names[-1], *names), names, strict=False)
    ]


def test_a_circle_is_found_however_long_it_is() -> None:
    held, problems = check_imports(chain("A", "B", "C", "D"))
    assert [problem.reason for problem in problems] == ['Error adding service import "s": import forms a cycle']
    assert sum(map(len, held.values())) == 3


def test_an_account_that_imports_its_own_service_under_its_own_name_forms_a_cycle() -> None:
    own = AccountOptions(
        name="A",
        exports=(ExportOptions(subject="s", kind="service"),),
        imports=(service("A", "s"), service("A", "s", "t")),
    )
    held, problems = check_imports([own])
    assert len(problems) == 1
    assert [one.rename.local for one in held["A"]] == [b"t"]


def test_a_stream_and_a_service_make_no_circle() -> None:
    both = (ExportOptions(subject="s", kind="service"), ExportOptions(subject="s", kind="stream"))
    stream = ImportOptions(account="B", subject="s", kind="stream")
    accounts = [
        AccountOptions(name="A", exports=both, imports=(stream,)),
        AccountOptions(name="B", exports=both, imports=(service("A", "s"),)),
    ]
    assert check_imports(accounts)[1] == []


def test_the_same_import_twice_is_one_too_many() -> None:
    accounts = [
        AccountOptions(name="A", exports=(ExportOptions(subject="s", kind="service"),)),
        AccountOptions(name="B", imports=(service("A", "s"), service("A", "s"))),
    ]
    assert [problem.reason for problem in check_imports(accounts)[1]] == [
        'Error adding service import "s": service import already exists'
    ]


def test_a_narrower_import_is_covered_and_a_wider_one_is_not() -> None:
    exporter = AccountOptions(name="A", exports=(ExportOptions(subject="a.*.c", kind="service"),))
    for subject, covered in (("a.b.c", True), ("a.*.c", True), ("a.>", False), ("a.*.*", False), ("a.b", False)):
        assert (export_for(service("A", subject), "B", exporter) is not None) is covered
