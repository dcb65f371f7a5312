"""The SPARK_HOME without the zip that makes workers start slowly."""

from pathlib import Path

from headwater.spark_runtime.home import spark_home


def package(directory: Path) -> Path:
    """As much of a pyspark package as matters."""
    for part in ("bin", "jars", "sbin", "data", "licenses", "python/lib"):
        (directory / part).mkdir(parents=True)
    (directory / "bin" / "spark-submit").write_text("#!/bin/sh\n")
    return directory


def test_it_has_the_programs_and_no_zip(tmp_path: Path) -> None:
    home = spark_home(package(tmp_path / "a path" / "pyspark"), tmp_path / "cache")
    assert (home / "bin" / "spark-submit").read_text() == "#!/bin/sh\n"
    assert (home / "jars").is_dir()
    assert not (home / "python").exists()


def test_it_is_made_once_per_installation(tmp_path: Path) -> None:
    first, second = package(tmp_path / "one" / "pyspark"), package(tmp_path / "two" / "pyspark")
    home = spark_home(first, tmp_path / "cache")
    made = home.stat().st_ino
    assert spark_home(first, tmp_path / "cache") == home
    assert home.stat().st_ino == made
    assert spark_home(second, tmp_path / "cache") != home
    assert len(list((tmp_path / "cache" / "spark").iterdir())) == 2
