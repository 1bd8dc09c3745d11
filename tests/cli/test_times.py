from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ttlstore.cli.times import (
    UNITS,
    format_default_ttl,
    format_duration,
    format_left,
    format_time,
    parse_default_ttl,
    parse_duration,
    parse_time,
    parse_ttl,
)
from ttlstore.ttl import MAX_TTL

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("45", 45),
        ("45s", 45),
        ("15m", 900),
        ("36h", 129_600),
        ("90d", 7_776_000),
        ("2w", 1_209_600),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("1D", 86_400),
        ("0", 0),
    ],
)
def test_a_duration_is_read_as_people_write_it(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", " ", "h", "1x", "1.5h", "-1", "30m1h", "1h30", "\u0661h", "\u0664\u0665", "1h1h", "+1h"]
)
def test_what_is_no_duration_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(ValueError, match="90d, 36h, 15m, 1h30m or 45") as refused:
        parse_duration(text)
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize("text", ["2147483648", "24856d", "9" * 15 + "w"])
def test_a_duration_that_no_ttl_can_have_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="at most 2147483647 seconds"):
        parse_duration(text)


@given(st.text())
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert 0 <= parse_duration(text) <= MAX_TTL


@given(st.integers(0, MAX_TTL))
@example(0)
def test_a_duration_that_is_shown_can_be_read_back(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.lists(st.integers(0, 500), min_size=len(UNITS), max_size=len(UNITS)))
def test_the_units_of_a_duration_add_up(counts: list[int]) -> None:
    text = "".join(f"{count}{unit}" for count, unit in zip(counts, UNITS, strict=True))
    assert parse_duration(text) == sum(count * size for count, size in zip(counts, UNITS.values(), strict=True))


@given(st.one_of(st.none(), st.just(-1), st.integers(1, MAX_TTL)))
def test_a_setting_is_shown_in_the_words_it_is_given_in(default_ttl: int | None) -> None:
    assert parse_default_ttl(format_default_ttl(default_ttl).removesuffix(", no default")) == default_ttl


def test_a_setting_that_cannot_be_read_says_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"off, on \(no default\) or a duration.*got 'sometimes'"):
        parse_default_ttl("sometimes")


def test_a_ttl_may_be_never() -> None:
    assert parse_ttl("never") == -1
    assert parse_ttl("15m") == 900


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "never"),
        (0.04, "0.0s"),
        (9.96, "10.0s"),
        (59.9, "59s"),
        (61, "1m 1s"),
        (3600, "1h 0m"),
        (90_061, "1d 1h"),
    ],
)
def test_time_left_is_shown_by_its_two_largest_units(seconds: float | None, shown: str) -> None:
    assert format_left(seconds) == shown


def test_a_time_is_iso_or_counted_from_now() -> None:
    assert parse_time("+1h30m", NOW) == NOW + 5400
    assert parse_time("2030-01-31T12:00Z", NOW) == datetime(2030, 1, 31, 12, tzinfo=UTC).timestamp()
    assert parse_time("2030-01-31 12:00", NOW) == datetime(2030, 1, 31, 12).timestamp()


@given(st.integers(0, 4_000_000_000))
def test_a_time_that_is_shown_can_be_read_back(seconds: int) -> None:
    assert parse_time(format_time(seconds), NOW) == seconds


@pytest.mark.parametrize("text", ["tomorrow", "", "+", "+x", "2030-13-01"])
def test_what_is_no_time_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(ValueError, match="got"):
        parse_time(text, NOW)
