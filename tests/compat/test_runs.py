"""Results are read and compared as the suites' tools print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.compat import kafka_clients, kgo, librdkafka
from tests.compat.__main__ import SUITES
from tests.compat.expected import differing, expected, parse
from tests.compat.runs import Runner
from tests.compat.suite import FAILED, PASSED, SKIPPED, Results, junit_results


def test_results_of_go_stand_behind_marks() -> None:
    """The tests' own output may look the same; a test without a result has not ended."""
    output = (
        "\x16=== RUN   TestA\n\x16=== RUN   TestA/one\nno end\x16    --- PASS: TestA/one (0s)\n"
        "\x16--- FAIL: TestA (0.01s)\n--- PASS: TestMine (0.0s)\n"
        "\x16=== RUN   TestB\n\x16--- SKIP: TestB (0.00s)\n\x16=== RUN   TestC\npanic: x\n"
    )
    wanted = {"TestA/one": PASSED, "TestA": FAILED, "TestB": SKIPPED, "TestC": FAILED}
    assert kgo.results(output) == wanted


def test_results_of_librdkafka_stand_where_a_test_ends() -> None:
    """One that says nothing more has failed."""
    output = (
        "\x1b[36m[0001_multiobj / 0.000s] ======== Running test 0001_multiobj ========\n"
        "\x1b[0m\x1b[36m[0001 / 1.1s] \x1b[32m===== Test 0001_multiobj PASSED =====\x1b[0m\n"
        "\x1b[36m[0052_stamps / 0.000s] ===== Running test 0052_stamps =====\n"
        '\x1b[31m### Test "0052_stamps" failed at test.c:5073: ###\n'
        "\x1b[36m[0097_ssl / 0.000s] ===== Running test 0097_ssl =====\n"
        "\x1b[36m[0097_ssl / 0.000s] \x1b[33m===== Test 0097_ssl SKIPPED =====\x1b[0m\n"
        "\x1b[33m[0025_timers / 0.000s] WARN: SKIPPING TEST: Filtered due to negative test flags\n"
    )
    wanted = {"0001_multiobj": PASSED, "0052_stamps": FAILED, "0097_ssl": SKIPPED}
    assert librdkafka.results(output) == wanted


def test_results_in_the_form_of_junit(tmp_path: Path) -> None:
    """An error outside a test's own code is a failure too."""
    report = tmp_path / "report.xml"
    assert junit_results(report) == {}
    report.write_text(
        '<testsuites><testsuite><testcase classname="a.B" name="one"/>'
        '<testcase classname="a.B" name="two"><error/></testcase>'
        '<testcase classname="a.B" name="three"><skipped/></testcase></testsuite></testsuites>'
    )
    assert junit_results(report) == {
        ("a.B", "one"): PASSED,
        ("a.B", "two"): FAILED,
        ("a.B", "three"): SKIPPED,
    }


def test_names_of_tests_in_java() -> None:
    """Short, and with the number of the invocation where there are several."""
    name = kafka_clients.short_name
    assert name("org.a.ATest", "testX(ClusterInstance)[2]") == "ATest.testX[2]"
    assert name("org.a.ATest", "testX()") == "ATest.testX"


@pytest.mark.parametrize("suite", SUITES)
def test_each_suite_has_a_list(suite: str) -> None:
    """It can be read, so it has a reason for what does not pass."""
    assert PASSED in expected(suite).values()


@pytest.mark.parametrize(
    "line", ["passed", "good A", "failed A", "skipped A  # ", "passed A  # why", "passed B"]
)
def test_a_bad_list_is_refused(line: str) -> None:
    """By the line: an unknown result, no reason or one too many, a test that was there."""
    with pytest.raises(ValueError, match="test"):
        parse(f"# a list\npassed B\n{line}\n")


def test_what_differs_from_the_list() -> None:
    """All of it must have results, or what was chosen; more must be right too."""
    wanted = parse("passed A\npassed A b\nvaries V  # sometimes\nfailed F  # no broker")
    right = {"A": PASSED, "A b": PASSED, "V": FAILED, "F": FAILED}
    assert differing(wanted, right) == {}
    assert differing(wanted, {"A": PASSED}, ["A"]) == {}
    assert set(differing(wanted, {"A": PASSED}, ["V"])) == {"V"}
    assert set(differing(wanted, {"A": PASSED})) == {"A b", "V", "F"}
    assert set(differing(wanted, {**right, "A b": SKIPPED, "F": PASSED, "N": PASSED})) == {
        "A b", "F", "N",
    }  # fmt: skip


class _Suite:
    """Tests with these results, in the first run and afterwards."""

    name = "made up"
    brokers = 0

    def __init__(self, first: Mapping[str, str], later: Mapping[str, str]) -> None:
        self.ran: list[Sequence[str]] = []
        self._outcomes = [first]
        self._later = later

    def prepare(self) -> None:
        raise AssertionError("nothing is to be fetched")

    def run(self, _bootstrap: str, tests: Sequence[str], _folder: Path) -> Results:
        """What was said, for these tests."""
        self.ran.append(tests)
        found = self._outcomes.pop() if self._outcomes else self._later
        return {test: found[test] for test in tests or found}


def _runner(suite: _Suite) -> Runner:
    return Runner(suite, "nowhere:1", {"A": PASSED, "B": PASSED, "C": PASSED}, Path())


def test_what_differs_runs_again_alone() -> None:
    """Only if it is wrong then too has the run failed."""
    suite = _Suite({"A": PASSED, "B": FAILED, "C": FAILED}, {"B": PASSED, "C": FAILED})
    run = _runner(suite).run()
    assert suite.ran == [(), ["B"], ["C"]]
    assert run.unsteady == ["B"]
    assert run.wrong == {"C": "failed instead of passed"}


def test_test_by_test_until_the_time_is_up() -> None:
    """Nothing begins without time."""
    right = dict.fromkeys("ABC", PASSED)
    suite = _Suite(right, right)
    assert _runner(suite).run_within(["B", "A"], 1000).results == {"B": PASSED, "A": PASSED}
    assert suite.ran == [["B"], ["A"]]
    assert _runner(suite).run_within(["B", "A"], 0).results == {}
