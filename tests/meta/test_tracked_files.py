"""What lies in the folders of the product and its tests is in the repository: an ignored file is missing in every clone."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MADE_BY_RUNNING = ("__pycache__/", ".egg-info/")


@pytest.mark.skipif(not (ROOT / ".git").exists() or shutil.which("git") is None, reason="this is no clone by git")
def test_no_file_of_the_product_or_its_tests_is_ignored_by_git() -> None:
    command = ["git", "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "src", "tests", "docs"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [path for path in found if not path.endswith(MADE_BY_RUNNING)] == []
