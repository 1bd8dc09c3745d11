"""Every function: what it gives, and when its result is undefined."""

import math
import sys
from typing import Any

import pytest

from tests.query.asking import NOW_MS, value_of
from ttlstore import QueryError
from ttlstore.query.functions import AGGREGATES, FUNCTIONS, regex
from ttlstore.query.values import RANK, UNDEFINED

TYPES = [
    ("IS_DEFINED(c.nothing)", True),
    ("IS_DEFINED(c.missing)", False),
    ("is_defined(c.one)", True),
    ("IS_NULL(null)", True),
    ("IS_NULL(undefined)", False),
    ("IS_BOOL(false)", True),
    ("IS_BOOL(0)", False),
    ("IS_NUMBER(0.5)", True),
    ("IS_NUMBER(true)", False),
    ("IS_NUMBER('1')", False),
    ("IS_FINITE_NUMBER(1)", True),
    ("IS_INTEGER(1)", True),
    ("IS_INTEGER(1.0)", True),
    ("IS_INTEGER(1.5)", False),
    ("IS_INTEGER('1')", False),
    ("IS_STRING('')", True),
    ("IS_STRING(c.missing)", False),
    ("IS_ARRAY([])", True),
    ("IS_ARRAY({})", False),
    ("IS_OBJECT({})", True),
    ("IS_OBJECT(null)", False),
    ("IS_PRIMITIVE(null)", True),
    ("IS_PRIMITIVE('a')", True),
    ("IS_PRIMITIVE([])", False),
    ("IS_PRIMITIVE(undefined)", False),
    ("IIF(1 < 2, 'yes', 'no')", "yes"),
    ("IIF(1, 'yes', 'no')", "no"),
    ("IIF(undefined, 'yes', 'no')", "no"),
    ("IIF(true, undefined, 'no')", UNDEFINED),
]

STRINGS = [
    ("CONCAT('a', 'b', 'c')", "abc"),
    ("CONCAT('a', 1)", UNDEFINED),
    ("CONCAT('a', undefined)", UNDEFINED),
    ("CONTAINS('abc', 'b')", True),
    ("CONTAINS('abc', 'B')", False),
    ("CONTAINS('abc', 'B', true)", True),
    ("CONTAINS('abc', 'B', 1)", UNDEFINED),
    ("CONTAINS('abc', '')", True),
    ("CONTAINS(c.missing, 'a')", UNDEFINED),
    ("CONTAINS(['a'], 'a')", UNDEFINED),
    ("STARTSWITH('abc', 'a')", True),
    ("STARTSWITH('abc', 'A')", False),
    ("STARTSWITH('abc', 'AB', true)", True),
    ("STARTSWITH('abc', 1)", UNDEFINED),
    ("ENDSWITH('abc', 'bc')", True),
    ("ENDSWITH('abc', 'BC', true)", True),
    ("ENDSWITH(null, 'c')", UNDEFINED),
    ("STRINGEQUALS('abc', 'abc')", True),
    ("STRINGEQUALS('abc', 'ABC')", False),
    ("STRINGEQUALS('abc', 'ABC', true)", True),
    ("STRINGEQUALS('abc', 'ABC', false)", False),
    ("STRINGEQUALS(1, '1')", UNDEFINED),
    ("INDEX_OF('abcabc', 'c')", 2),
    ("INDEX_OF('abcabc', 'c', 3)", 5),
    ("INDEX_OF('abc', 'x')", -1),
    ("INDEX_OF('abc', 1)", UNDEFINED),
    ("LEFT('abc', 2)", "ab"),
    ("LEFT('abc', 10)", "abc"),
    ("LEFT('abc', 0)", ""),
    ("LEFT('abc', -1)", ""),
    ("LEFT('abc', 1.5)", UNDEFINED),
    ("RIGHT('abc', 2)", "bc"),
    ("RIGHT('abc', 0)", ""),
    ("RIGHT('abc', 10)", "abc"),
    ("RIGHT(1, 1)", UNDEFINED),
    ("SUBSTRING('abcdef', 1, 3)", "bcd"),
    ("SUBSTRING('abc', 1, 100)", "bc"),
    ("SUBSTRING('abc', 5, 1)", ""),
    ("SUBSTRING('abc', 0, -1)", ""),
    ("SUBSTRING('abc', '0', 1)", UNDEFINED),
    ("LENGTH(c.text)", 6),
    ("LENGTH('😀')", 1),
    ("LENGTH([1])", UNDEFINED),
    ("LOWER('ABC')", "abc"),
    ("UPPER('abc')", "ABC"),
    ("UPPER(1)", UNDEFINED),
    ("TRIM('  a ')", "a"),
    ("LTRIM('  a ')", "a "),
    ("RTRIM('  a ')", "  a"),
    ("TRIM('-_-a-_-', '-_')", "a"),
    ("LTRIM('AdventureWorks', 'Adventure')", "Works"),
    ("RTRIM('AdventureWorks', 'Works')", "Adventure"),
    ("RTRIM('abc', '')", "abc"),
    ("TRIM(null)", UNDEFINED),
    ("TRIM('a', 1)", UNDEFINED),
    ("REPLACE('aXbX', 'X', '-')", "a-b-"),
    ("REPLACE('abc', '', '-')", "abc"),
    ("REPLACE('abc', 'b', 1)", UNDEFINED),
    ("REPLICATE('ab', 3)", "ababab"),
    ("REPLICATE('ab', 0)", ""),
    ("REPLICATE('ab', -1)", UNDEFINED),
    ("LENGTH(REPLICATE('a', 10000))", 10000),
    ("REPLICATE('a', 10001)", UNDEFINED),  # as in the reference
    ("REVERSE('abc')", "cba"),
    ("REVERSE(123)", UNDEFINED),
    ("REGEXMATCH('abcd', 'ABC')", False),
    ("REGEXMATCH('abcd', 'ABC', 'i')", True),
    ("REGEXMATCH('abcd', 'ab c', 'x')", True),
    ("REGEXMATCH('ab cd', 'b[ ]c # a space', 'x')", True),
    (r"REGEXMATCH('ab cd', 'b\\ c', 'x')", True),
    ("REGEXMATCH('a]c', 'a []] c', 'x')", True),
    ("REGEXMATCH('a\nb', '^b$')", False),
    ("REGEXMATCH('a\nb', '^b$', 'm')", True),
    ("REGEXMATCH('a\nb', 'a.b')", False),
    ("REGEXMATCH('a\nb', 'a.b', 's')", True),
    ("REGEXMATCH('abcd', 'aB c', 'ix')", True),
    ("REGEXMATCH('Straße', 'ß')", True),
    ("REGEXMATCH('abc', c.list[1])", False),
    ("REGEXMATCH('a', '(' || c.missing)", UNDEFINED),
    ("REGEXMATCH('a', '(' || '')", UNDEFINED),  # a pattern that no one wrote into the query
    ("REGEXMATCH('a', 'a', 'q' || '')", UNDEFINED),
    ("REGEXMATCH(1, '1')", UNDEFINED),
    ("REGEXMATCH('a', 1)", UNDEFINED),
    ("STRINGSPLIT('a_b_c', '_')", ["a", "b", "c"]),
    ("STRINGSPLIT('xenmoun mountain bike', 'moun')", ["xen", " ", "tain bike"]),
    ("STRINGSPLIT('Helmet', '')", ["Helmet"]),
    ("STRINGSPLIT('', '')", [""]),
    ("STRINGSPLIT('a', undefined)", UNDEFINED),
    ("STRINGJOIN(['a', 'b'], '-')", "a-b"),
    ("STRINGJOIN([], '-')", ""),
    ("STRINGJOIN(['a', 1], '-')", UNDEFINED),
    ("STRINGJOIN('ab', '-')", UNDEFINED),
]

CONVERSIONS = [
    ("TOSTRING(125)", "125"),
    ("TOSTRING(0.1234)", "0.1234"),
    ("TOSTRING(3.0)", "3"),
    ("TOSTRING(false)", "false"),
    ("TOSTRING(null)", "null"),
    ("TOSTRING('a')", "a"),
    ("TOSTRING([1, 'a', null])", '[1,"a",null]'),
    ("TOSTRING({a: 1})", '{"a":1}'),
    ("TOSTRING(undefined)", UNDEFINED),
    ("STRINGTONUMBER('1.5')", 1.5),
    ("STRINGTONUMBER(' 12 ')", 12),
    ("STRINGTONUMBER('-1e3')", -1000.0),
    ("STRINGTONUMBER('1a')", UNDEFINED),
    ("STRINGTONUMBER('')", UNDEFINED),
    ("STRINGTONUMBER('true')", UNDEFINED),
    ("STRINGTONUMBER('NaN')", UNDEFINED),
    ("STRINGTONUMBER(1)", UNDEFINED),
    ("STRINGTOBOOLEAN(' true ')", True),
    ("STRINGTOBOOLEAN('false')", False),
    ("STRINGTOBOOLEAN('TRUE')", UNDEFINED),
    ("STRINGTOBOOLEAN(true)", UNDEFINED),
    ("STRINGTONULL('null')", None),
    ("STRINGTONULL('nul')", UNDEFINED),
    ("""STRINGTOARRAY('[1, [2], {"a": 3}]')""", [1, [2], {"a": 3}]),
    ("STRINGTOARRAY('{}')", UNDEFINED),
    ("""STRINGTOARRAY("['a']")""", UNDEFINED),
    ("""STRINGTOOBJECT('{"a": [1]}')""", {"a": [1]}),
    ("STRINGTOOBJECT('[]')", UNDEFINED),
    ("STRINGTOOBJECT('{a: 1}')", UNDEFINED),
]

ARRAYS = [
    ("ARRAY_CONTAINS([1, 2], 2)", True),
    ("ARRAY_CONTAINS([1, 2], 2.0)", True),
    ("ARRAY_CONTAINS([1, 2], '2')", False),
    ("ARRAY_CONTAINS([1], true)", False),
    ("ARRAY_CONTAINS([null], null)", True),
    ("ARRAY_CONTAINS([1], undefined)", UNDEFINED),
    ("ARRAY_CONTAINS(c.missing, 1)", UNDEFINED),
    ("ARRAY_CONTAINS('abc', 'a')", UNDEFINED),
    ("ARRAY_CONTAINS([{a: 1, b: 2}], {a: 1})", False),
    ("ARRAY_CONTAINS([{a: 1, b: 2}], {b: 2, a: 1})", True),
    ("ARRAY_CONTAINS([{a: 1, b: 2}], {a: 1}, true)", True),
    ("ARRAY_CONTAINS([{a: 1, b: 2}], {a: 2}, true)", False),
    ("ARRAY_CONTAINS([{a: 1, b: 2}], {c: 1}, true)", False),
    ("ARRAY_CONTAINS([1, 2], 2, true)", True),
    ("ARRAY_CONTAINS([1], 1, 'yes')", UNDEFINED),
    ("ARRAY_CONTAINS_ANY([1, 2, 3], 3, 4)", True),
    ("ARRAY_CONTAINS_ANY([1, 2, 3], 4, 5)", False),
    ("ARRAY_CONTAINS_ANY([1, 2, 3], 1, undefined)", True),
    ("ARRAY_CONTAINS_ANY([1, 2, 3], 4, undefined)", UNDEFINED),
    ("ARRAY_CONTAINS_ANY([], 1)", False),
    ("ARRAY_CONTAINS_ANY(1, 1)", UNDEFINED),
    ("ARRAY_CONTAINS_ALL([1, true, '3', [1]], 1, true, '3', [1])", True),
    ("ARRAY_CONTAINS_ALL([1, 2, 3], 3, 4)", False),
    ("ARRAY_CONTAINS_ALL([1, 2, 3], 1, undefined)", UNDEFINED),
    ("ARRAY_CONTAINS_ALL([1, 2, 3], 4, undefined)", False),
    ("ARRAY_CONTAINS_ALL(null, 1)", UNDEFINED),
    ("ARRAY_LENGTH(c.list)", 5),
    ("ARRAY_LENGTH(c.object)", UNDEFINED),
    ("ARRAY_SLICE([1, 2, 3], 1)", [2, 3]),
    ("ARRAY_SLICE([1, 2, 3], 1, 1)", [2]),
    ("ARRAY_SLICE([1, 2, 3], -2, 1)", [2]),
    ("ARRAY_SLICE([1, 2, 3], -9)", [1, 2, 3]),
    ("ARRAY_SLICE([1, 2, 3], 1, 0)", []),
    ("ARRAY_SLICE([1, 2, 3], 1, 1000)", [2, 3]),
    ("ARRAY_SLICE([1, 2, 3], 1, -100)", []),
    ("ARRAY_SLICE([1, 2, 3], '1')", UNDEFINED),
    ("ARRAY_SLICE('abc', 1)", UNDEFINED),
    ("ARRAY_CONCAT([1], [2, [3]], [])", [1, 2, [3]]),
    ("ARRAY_CONCAT([1], 2)", UNDEFINED),
    ("SETUNION([1, 2, 2], [3, 1.0, {a: 1}])", [1, 2, 3, {"a": 1}]),
    ("SETUNION([1], [true])", [1, True]),
    ("SETUNION([1], null)", UNDEFINED),
    ("SETINTERSECT([1, 2, 2, 'a'], ['a', 2])", [2, "a"]),
    ("SETINTERSECT([1], [true])", []),
    ("SETINTERSECT(1, [1])", UNDEFINED),
]

NUMBERS = [
    ("ABS(-2)", 2),
    ("ABS(-2.5)", 2.5),
    ("ABS('2')", UNDEFINED),
    ("ABS(true)", UNDEFINED),
    ("CEILING(1.2)", 2),
    ("CEILING(-1.2)", -1),
    ("FLOOR(-1.2)", -2),
    ("FLOOR(c.missing)", UNDEFINED),
    ("ROUND(2.5)", 3),
    ("ROUND(-2.5)", -3),
    ("ROUND(-0.5)", -1),
    ("ROUND(2.4)", 2),
    ("ROUND(0.49999999999999994)", 0),
    ("TRUNC(-2.7)", -2),
    ("SIGN(-3)", -1),
    ("SIGN(0)", 0),
    ("SIGN(0.1)", 1),
    ("SQRT(9)", 3.0),
    ("SQRT(-1)", UNDEFINED),
    ("SQUARE(3)", 9),
    ("SQUARE(1e200)", UNDEFINED),
    ("POWER(2, 10)", 1024),
    ("POWER(2, -1)", 0.5),
    ("POWER(3, 39)", 3**39),
    ("POWER(2, 64)", 2.0**64),
    ("POWER(10, 1000000000)", UNDEFINED),
    ("POWER(0, -1)", UNDEFINED),
    ("POWER(-1, 0.5)", UNDEFINED),
    ("EXP(0)", 1.0),
    ("EXP(1000)", UNDEFINED),
    ("LOG(1)", 0.0),
    ("LOG(8, 2)", 3.0),
    ("LOG(2, 10)", math.log10(2)),
    ("LOG(0)", UNDEFINED),
    ("LOG(2, 1)", UNDEFINED),
    ("LOG10(1000)", 3.0),
    ("PI()", math.pi),
    ("SIN(0)", 0.0),
    ("COS(0)", 1.0),
    ("TAN(0)", 0.0),
    ("COT(0)", UNDEFINED),
    ("COT(1)", 1 / math.tan(1)),
    ("ASIN(1)", math.pi / 2),
    ("ASIN(2)", UNDEFINED),
    ("ACOS(1)", 0.0),
    ("ATAN(1)", math.pi / 4),
    ("ATN2(1, 1)", math.pi / 4),
    ("DEGREES(PI())", 180.0),
    ("RADIANS(180)", math.pi),
    ("NUMBERBIN(37.752, 10)", 30),
    ("NUMBERBIN(37.752)", 37),
    ("NUMBERBIN(37.752, 0.1)", 37.7),
    ("NUMBERBIN(37.752, -100)", 100),
    ("NUMBERBIN(37.752, 0)", UNDEFINED),
    ("NUMBERBIN('1', 2)", UNDEFINED),
    ("NUMBERBIN(1e308, 9223372036854775807 * 1e-300)", UNDEFINED),
    ("FLOOR(1e300)", 1e300),
]

DATES = [
    ("GETCURRENTDATETIME()", "2023-11-14T22:13:20.0000000Z"),
    ("GETCURRENTTIMESTAMP()", NOW_MS),
    ("GETCURRENTTICKS()", NOW_MS * 10_000),
    ("DATETIMETOTIMESTAMP('2020-07-09T23:20:13.4575530Z')", 1594336813457),
    ("DATETIMETOTIMESTAMP('2020-07-09')", 1594252800000),
    ("DATETIMETOTIMESTAMP('1969-12-31T23:59:59.9990000Z')", -1),
    ("DATETIMETOTIMESTAMP('yesterday')", UNDEFINED),
    ("DATETIMETOTIMESTAMP('2020-02-30T00:00:00Z')", UNDEFINED),
    ("DATETIMETOTIMESTAMP('2020-01-01T24:00:00Z')", UNDEFINED),
    ("DATETIMETOTIMESTAMP('2020-01-01T00:00:00+01:00')", UNDEFINED),
    ("DATETIMETOTIMESTAMP(0)", UNDEFINED),
    ("TIMESTAMPTODATETIME(1594227912345)", "2020-07-08T17:05:12.3450000Z"),
    ("TIMESTAMPTODATETIME(-1)", "1969-12-31T23:59:59.9990000Z"),
    ("TIMESTAMPTODATETIME(1e300)", UNDEFINED),
    ("TIMESTAMPTODATETIME('0')", UNDEFINED),
    ("DATETIMETOTICKS('2020-01-02T03:04:05.6789123Z')", 15779342456789123),
    ("TICKSTODATETIME(15779342456789123)", "2020-01-02T03:04:05.6789123Z"),
    ("DATETIMEADD('mm', 1, '2020-01-31T00:00:00.0000000Z')", "2020-02-29T00:00:00.0000000Z"),
    ("DATETIMEADD('month', -13, '2020-01-31T12:00:00Z')", "2018-12-31T12:00:00.0000000Z"),
    ("DATETIMEADD('yyyy', 1, '2020-02-29T00:00:00Z')", "2021-02-28T00:00:00.0000000Z"),
    ("DATETIMEADD('dd', -2, '2020-07-03T00:00:00Z')", "2020-07-01T00:00:00.0000000Z"),
    ("DATETIMEADD('HH', 25, '2020-07-03T00:00:00Z')", "2020-07-04T01:00:00.0000000Z"),
    ("DATETIMEADD('ns', 250, '2020-07-03T00:00:00Z')", "2020-07-03T00:00:00.0000002Z"),
    ("DATETIMEADD('week', 1, '2020-07-03T00:00:00Z')", UNDEFINED),
    ("DATETIMEADD('dd', 1.5, '2020-07-03T00:00:00Z')", UNDEFINED),
    ("DATETIMEADD('yyyy', 8000, '2020-07-03T00:00:00Z')", UNDEFINED),
    ("DATETIMEADD('dd', 99999999999, '2020-07-03T00:00:00Z')", UNDEFINED),
    ("DATETIMEDIFF('day', '2020-01-01T01:02:03.1234527Z', '2020-01-03T01:02:03.1234567Z')", 2),
    ("DATETIMEDIFF('yyyy', '2028-01-01T01:02:03.1234527Z', '2020-01-03T01:02:03.1234567Z')", -8),
    ("DATETIMEDIFF('hh', '2020-01-01T01:00:00.1234527Z', '2020-01-01T01:59:59.1234567Z')", 0),
    ("DATETIMEDIFF('hh', '2020-01-01T01:59:59Z', '2020-01-01T02:00:00Z')", 1),
    ("DATETIMEDIFF('m', '2019-12-31T00:00:00Z', '2020-02-01T00:00:00Z')", 2),
    ("DATETIMEDIFF('ns', '2020-01-01T00:00:00Z', '2020-01-01T00:00:00.0000001Z')", 100),
    ("DATETIMEDIFF('day', '2020-01-01', 'x')", UNDEFINED),
    ("DATETIMEPART('2016-05-29T08:30:00.1301617', 'yyyy')", 2016),
    ("DATETIMEPART('2016-05-29T08:30:00.1301617', 'm')", 5),
    ("DATETIMEPART('2016-05-29T08:30:00.1301617', 'dd')", 29),
    ("DATETIMEPART('2016-05-29T08:30:00.1301617', 'hh')", 8),
    ("DATETIMEPART('2016-05-29T08:30:00.1301617', 'mi')", 30),
    ("DATETIMEPART('2016-05-29T08:30:00.1301617', 'ss')", 0),
    ("DATETIMEPART('2016-05-29T08:30:00.1301617', 'ms')", 130),
    ("DATETIMEPART('2016-05-29T08:30:00.1301617', 'mcs')", 130161),
    ("DATETIMEPART('2016-05-29T08:30:00.1301617', 'ns')", 130161700),
    ("DATETIMEPART('2016-05-29T08:30:00', 'century')", UNDEFINED),
    ("DATETIMEPART(1, 'yyyy')", UNDEFINED),
    ("DATETIMEBIN('2021-01-08T18:35:00.0000000', 'dd')", "2021-01-08T00:00:00.0000000Z"),
    ("DATETIMEBIN('2021-01-08T18:35:00.0000000', 'hh', 5)", "2021-01-08T15:00:00.0000000Z"),
    ("DATETIMEBIN('2021-01-08T18:35:00.0000000', 'dd', 7)", "2021-01-07T00:00:00.0000000Z"),
    ("DATETIMEBIN('2021-01-08T18:35:00', 'dd', 7, '1601-01-01T00:00:00')", "2021-01-04T00:00:00.0000000Z"),
    ("DATETIMEBIN('2021-01-08T18:35:00', 'mm')", UNDEFINED),
    ("DATETIMEBIN('2021-01-08T18:35:00', 'dd', 0)", UNDEFINED),
    ("DATETIMEBIN('2021-01-08T18:35:00', 'dd', 1, 1970)", UNDEFINED),
]

TABLE = [*TYPES, *STRINGS, *CONVERSIONS, *ARRAYS, *NUMBERS, *DATES]


@pytest.mark.parametrize(("expression", "expected"), TABLE, ids=lambda value: str(value))
def test_a_function_gives(expression: str, expected: Any) -> None:
    value = value_of(expression)
    assert value == (pytest.approx(expected) if isinstance(expected, float) else expected)
    assert type(value) is type(expected)


def test_every_function_is_in_the_table() -> None:
    shown = " ".join(expression.upper() for expression, _ in TABLE)
    assert [name for name in FUNCTIONS if f"{name}(" not in shown] == []


def test_aggregates_are_no_functions() -> None:
    assert not FUNCTIONS.keys() & set(AGGREGATES)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_takes_any_values_and_gives_one(name: str) -> None:
    function = FUNCTIONS[name]
    odd = ["undefined", "null", "true", "-1", "0.5", "1e300", "''", "'i'", "[]", "[null]", "{}", "{a: [1]}"]
    for value in odd:
        for count in {function.least, function.least + 1 if function.most is None else function.most}:
            assert type(value_of(f"{name}({', '.join([value] * count)})")) in RANK


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("REGEXMATCH(c.text, '(')", "not valid"),
        ("REGEXMATCH(c.text, 'a(?=b)')", "look-around"),
        (r"REGEXMATCH(c.text, '(a)\\1')", "back references"),
        ("REGEXMATCH(c.text, 'a', 'g')", "i, m, s and x, got 'g'"),
        ("REGEXMATCH(c.text, '((a{100}){100}){100}')", "not valid"),
    ],
)
def test_a_pattern_that_is_wrong_is_refused_before_the_query_runs(expression: str, problem: str) -> None:
    with pytest.raises(QueryError, match=problem):
        value_of(expression)


def test_no_pattern_takes_long() -> None:
    assert value_of("REGEXMATCH(@text, '(a*)*b')", text="a" * 100_000) is False
    assert value_of("@text LIKE '%a%a%a%a%a%b'", text="a" * 2_000) is False


def test_a_pattern_that_would_be_slow_is_refused() -> None:
    with pytest.raises(QueryError, match="at most 1000 characters, got 1001"):
        value_of("c.text LIKE @like", like="_" * 1001)
    assert value_of("c.text LIKE @like", like="x" * 100_000) is False


def test_a_value_that_is_nested_too_deep_is_not_written() -> None:
    with pytest.raises(QueryError, match="nested so deep"):
        value_of("TOSTRING(STRINGTOARRAY(@text))", text="[" * 1000 + "]" * 1000)


def test_without_the_engine_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    regex._compile.cache_clear()
    with pytest.raises(QueryError, match=r"pip install 'ttlstore\[regex\]'"):
        value_of("REGEXMATCH('a', 'a')")


@pytest.mark.parametrize(
    "expression",
    [
        "CONCAT(@text, @text)",
        "@text || @text",
        "REPLACE(@text, 'a', 'aaa')",
        "STRINGJOIN([@text, @text], '')",
        "TOSTRING([@text, @text])",
        "(SELECT VALUE [@text, @text])",
        "ARRAY(SELECT VALUE @text FROM x IN c.list)",
        "ARRAY_CONCAT(@list, @list)",
    ],
)
def test_a_result_that_is_too_large_is_refused(expression: str) -> None:
    parameters: dict[str, Any] = {"text": "a" * 9_000_000, "list": [0] * 600_000}
    with pytest.raises(QueryError, match="would make a"):
        value_of(expression, **{name: value for name, value in parameters.items() if f"@{name}" in expression})


def test_arrays_of_shared_arrays_are_refused_before_they_explode() -> None:
    query = "x"
    for _ in range(40):
        query = f"(SELECT VALUE [x, x] FROM (SELECT VALUE {query}) AS x)" if query != "x" else "(SELECT VALUE [1, 1])"
    with pytest.raises(QueryError, match="more than 1000000 elements"):
        value_of(query)
