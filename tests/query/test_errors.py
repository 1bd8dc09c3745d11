"""What is wrong with a query is told with the line, a caret under the spot, and what would be right."""

import sys
from typing import Any

import pytest

from tests.query.asking import ask
from ttlstore import QueryError
from ttlstore.query.check import MAX_DEPTH
from ttlstore.query.parser import MAX_LENGTH, parse

# The query with ⌃ before the spot, and the message.
SPOTS = [
    ("SELECT * ⌃FORM c", "found 'FORM', expected FROM, GROUP BY, OFFSET, ORDER BY, WHERE or the end"),
    ("c.total >⌃", "the query ends here, expected an expression"),
    ("c.total >⌃  ", "the query ends here, expected an expression"),
    ("c.total ⌃10", "found '10', expected an operator or the end"),
    ("c.total > ⌃#", "found '#', expected an expression"),
    ("SELECT c.a, ⌃FROM c", "found 'FROM', expected an expression"),
    ("SELECT DISTINCT ⌃FROM c", "found 'FROM', expected an expression, *, TOP or VALUE"),
    ("SELECT * FROM ⌃WHERE c.a", "found 'WHERE', expected ( or a name"),
    ("SELECT * FROM c ORDER ⌃c.a", "found 'c.a', expected BY"),
    ("SELECT * FROM c OFFSET 5⌃", "the query ends here, expected LIMIT"),
    ("SELECT TOP ⌃x * FROM c", "found 'x', expected a number or a parameter"),
    ("(c.a⌃", "the query ends here, expected an operator or )"),
    ("c.a⌃)", "found ')', expected an operator or the end"),
    ("c.a IN ⌃5", "found '5', expected ("),
    ("c.a BETWEEN 1 ⌃OR 2", "found 'OR', expected AND or an operator"),
    ("SELECT VALUE {a ⌃1}", "found '1', expected a colon"),
    ("SELECT c.a AS ⌃5 FROM c", "found '5', expected a name"),
    ("c.a = ⌃'open", "this string has no closing '"),
    ("c.a = ⌃\"it's", 'this string has no closing "'),
    ("c.a ⌃/* why", "this comment has no closing */"),
    # other dialects
    ("c.a =⌃= 1", "found '=', expected an expression: one = is enough"),
    ("c.a &⌃& c.b", "found '&', expected an expression: write AND"),
    ("SELECT COUNT(⌃*) FROM c", "found '*', expected an expression or ): write COUNT(1)"),
    ("c.a ⌃IS NULL", "found 'IS', expected an operator or the end: write IS_NULL(…) or IS_DEFINED(…)"),
    (
        "SELECT * FROM c WHERE c.a ⌃LIMIT 5",
        "found 'LIMIT', expected an operator, GROUP BY, OFFSET, ORDER BY or the end: "
        "write OFFSET 0 LIMIT …, or TOP … after SELECT",
    ),
    (
        "SELECT c.a FROM c GROUP BY c.a ⌃HAVING COUNT(1) > 1",
        "found 'HAVING', expected an operator, OFFSET, ORDER BY, a comma or the end: "
        "select from the groups: FROM (SELECT … GROUP BY …) AS g WHERE …",
    ),
    (
        "c.a > 1 ⌃ORDER BY c.a",
        "found 'ORDER', expected an operator or the end: "
        "a query with clauses starts with SELECT, this is only a condition",
    ),
    (
        "SELEC * ⌃FROM c",
        "found 'FROM', expected an expression: a query with clauses starts with SELECT, this is only a condition",
    ),
    ("-- nothing⌃", "the query ends here, expected an expression"),
    # names
    ("SELECT ⌃id FROM c", "there is no id here: did you mean c.id?"),
    ("⌃x.total > 10", "there is no x here: did you mean c.x?"),
    ("SELECT VALUE ⌃c.a", "there is no c here: the outermost query has no FROM"),
    ("SELECT ⌃y FROM c JOIN x IN c.items", "there is no y here, only c and x"),
    ("SELECT * FROM root r WHERE ⌃root.a = 1", "there is no root here: did you mean r.root?"),
    ("SELECT x FROM c JOIN x IN ⌃d.items", "there is no d here: did you mean c.d?"),
    ("SELECT c FROM c JOIN ⌃c IN c.items", "there is a c already: give this one another name"),
    ("EXISTS(SELECT VALUE 1 FROM ⌃c IN c.items)", "there is a c already: give this one another name"),
    ("SELECT VALUE (SELECT VALUE 1 FROM ⌃c)", "there is no c here: the outermost query has no FROM"),
    ("SELECT c.a, c.b AS ⌃a FROM c", "the result has a property a already: give one of them another name with AS"),
    ("SELECT VALUE {a: 1, ⌃'a': 2}", "the object has a property a already"),
    ("SELECT * FROM c.items[⌃c.i]", "a path in FROM leads by names and by indexes from 0, such as c.items[0]"),
    # functions
    ("⌃LENGHT(c.a) = 1", "there is no function LENGHT: did you mean LENGTH?"),
    ("⌃frobnicate(c.a)", "there is no function frobnicate"),
    ("⌃ABS() = 1", "ABS takes 1 argument, got 0"),
    ("⌃ABS(1, 2) = 1", "ABS takes 1 argument, got 2"),
    ("⌃PI(1) > 3", "PI takes no arguments, got 1"),
    ("⌃CONTAINS('a')", "CONTAINS takes 2 or 3 arguments, got 1"),
    ("⌃DATETIMEBIN('a') = 1", "DATETIMEBIN takes 2 to 4 arguments, got 1"),
    ("⌃CONCAT('a') = 'a'", "CONCAT takes 2 arguments or more, got 1"),
    ("SELECT ⌃COUNT(1, 2) FROM c", "COUNT takes 1 argument, got 2"),
    # aggregates
    ("SELECT * FROM c WHERE ⌃COUNT(1) > 1", "COUNT cannot stand here: WHERE chooses single rows"),
    ("SELECT c.a FROM c GROUP BY ⌃MAX(c.a)", "MAX cannot stand here: GROUP BY makes the groups"),
    ("SELECT SUM(⌃MAX(c.a)) FROM c", "MAX cannot stand here: an aggregate takes a value of each row"),
    (
        "SELECT COUNT(1), ⌃c.a.b[0] FROM c",
        "c.a.b[0] has a value for each row, and the aggregates have one for all: "
        "put it into GROUP BY, or into an aggregate such as MAX",
    ),
    (
        'SELECT c.a, ⌃c["b c"] FROM c GROUP BY c.a',
        'c["b c"] is not in GROUP BY: put it into GROUP BY, or into an aggregate such as MAX',
    ),
    (
        "SELECT COUNT(1), ⌃EXISTS(SELECT VALUE x FROM x IN c.items) AS e FROM c",
        "a subquery beside aggregates cannot see single rows: put it into GROUP BY",
    ),
    (
        "SELECT MAX(c.a), (⌃SELECT VALUE 1 FROM (SELECT VALUE 1 WHERE c.b) AS x) AS e FROM c",
        "a subquery beside aggregates cannot see single rows: put it into GROUP BY",
    ),
    (
        "SELECT MAX(c.a), ⌃ARRAY(SELECT VALUE y FROM y IN (SELECT VALUE [1]) WHERE EXISTS(SELECT VALUE c)) FROM c",
        "a subquery beside aggregates cannot see single rows: put it into GROUP BY",
    ),
    # SELECT *
    ("SELECT ⌃*", "SELECT * needs a FROM"),
    (
        "SELECT ⌃* FROM c JOIN x IN c.items",
        "SELECT * is for one source, and this query has a JOIN: name what to select",
    ),
    (
        "SELECT ⌃* FROM c ORDER BY COUNT(1)",
        "SELECT * is not for groups: select what is grouped by, and aggregates",
    ),
    ("SELECT ⌃* FROM c GROUP BY c.a", "SELECT * is not for groups: select what is grouped by, and aggregates"),
    # numbers and strings
    ("SELECT TOP ⌃1.5 * FROM c", "TOP takes a whole number, got 1.5"),
    ("SELECT TOP ⌃1 * FROM c OFFSET 1 LIMIT 1", "TOP and OFFSET … LIMIT exclude each other: leave one out"),
    ("c.a = ⌃1e999", "this number is too large: numbers end at 1.7976931348623157e308"),
    ("c.a = ⌃1" + "0" * 5000, "this number is too large: numbers end at 1.7976931348623157e308"),
    ("c.a = '⌃\\q'", "\\q is no escape: write \\\\ for a backslash"),
    ("c.a = ⌃'\\ud800'", "this string has half of a surrogate pair, which is no character"),
    ("c.a = '⌃\ud800'", "this is half of a surrogate pair, which is no character"),
]


@pytest.mark.parametrize(("marked", "message"), SPOTS, ids=lambda value: ascii(value)[:60])
def test_the_error_shows_the_spot(marked: str, message: str) -> None:
    text = marked.replace("⌃", "")
    column = marked.index("⌃") + 1
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert str(caught.value).split("\n")[0] == f"line 1, column {column}: {message}"
    assert (caught.value.line, caught.value.column) == (1, column)


def error_of(text: str, parameters: Any = None) -> str:
    with pytest.raises(QueryError) as caught:
        ask(text, [{"items": [1, 2]}], parameters)
    return str(caught.value)


def test_an_error_on_a_later_line_shows_that_line() -> None:
    assert error_of("SELECT *\nFROM c\n\tWHERE c.a >\nORDER BY c.a") == (
        "line 4, column 1: found 'ORDER', expected an expression\n  ORDER BY c.a\n  ^"
    )
    assert error_of("c.a =\n\t# 1") == "line 2, column 2: found '#', expected an expression\n   # 1\n   ^"


def test_of_a_long_line_only_a_part_is_shown() -> None:
    shown = error_of("c.a = 1 AND " * 50 + "# AND " + "c.b = 2 AND " * 50)
    _, line, caret = shown.split("\n")
    assert len(line) <= 80
    assert line[caret.index("^")] == "#"


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
def test_an_empty_query_is_refused(text: str) -> None:
    assert error_of(text) == 'the query is empty: write a SELECT, or a condition such as "c.total > 10"'


def test_a_query_is_a_string() -> None:
    assert error_of(None) == "a query is a string, got None"  # type: ignore[arg-type]


def test_a_text_that_is_too_long_is_refused() -> None:
    long = "c.a = '" + "x" * MAX_LENGTH + "'"
    assert error_of(long) == (
        f"a query has at most {MAX_LENGTH} characters, got {len(long)}: pass long values as parameters"
    )


NESTED = {
    "parentheses": "(" * 5000 + "1" + ")" * 5000,
    "open parentheses": "(" * 20_000,
    "arrays": "SELECT VALUE " + "[" * 5000 + "]" * 5000,
    "objects": "SELECT VALUE " + "{a:" * 5000 + "1" + "}" * 5000,
    "signs": "- " * 5000 + "c.a",
    "negations": "NOT " * 5000 + "c.a",
    "sums": "+".join(["c.a"] * 5000) + " > 1",
    "conditionals": "true ? 1 : " * 5000 + "1",
    "calls": "ABS(" * 5000 + "1" + ")" * 5000 + " = 1",
    "brackets": "c" + "[c.a" * 5000 + "]" * 5000,
    "subqueries": "(SELECT VALUE " * 2000 + "1" + ")" * 2000,
    "sources": "SELECT * FROM " + "(SELECT * FROM " * 2000 + "c" + ") AS x" * 2000,
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED.keys())
def test_deep_nesting_is_refused_and_crashes_nothing(text: str) -> None:
    if text.startswith("((") and ")" in text:
        assert ask(f"SELECT VALUE {text}") == [1]  # parentheses alone leave nothing in the tree
    else:
        with pytest.raises(QueryError):
            parse(text)


def test_a_query_that_is_wide_is_not_deep() -> None:
    wide = " OR ".join(f"c.a = {number}" for number in range(5000))
    assert ask(wide, [{"a": 4999}, {"a": 5000}]) == [{"a": 4999}]
    assert ask(f"c.a IN ({', '.join(map(str, range(5000)))})", [{"a": 4999}]) == [{"a": 4999}]
    assert ask("SELECT VALUE c" + ".a" * 5000 + " FROM c", [{"a": 1}]) == []
    assert ask("SELECT VALUE c" + "[0]" * 5000 + " FROM c", [{"a": 1}]) == []


def test_of_a_long_name_only_a_part_is_shown() -> None:
    for text in ("x" * 5000, "x" * 5000 + "(1)", "SELECT c.{0}, c.{0} FROM c".format("x" * 5000)):
        assert len(error_of(text)) < 400


def test_the_deepest_query_that_is_taken_can_be_run() -> None:
    deepest = MAX_DEPTH - 1
    for text in (
        "SELECT VALUE " + "[" * deepest + "]" * deepest,
        "SELECT VALUE " + "-(" * deepest + "c.n" + ")" * deepest + " FROM c",
        "SELECT VALUE " + "(SELECT VALUE " * deepest + "1" + ")" * deepest,
        "SELECT VALUE " + "ARRAY(SELECT VALUE " * deepest + "1" + ")" * deepest,
        "SELECT VALUE x.n FROM " + "(SELECT * FROM " * deepest + "c" + ") AS x" * deepest,
    ):
        assert len(ask(text, [{"n": 1}])) == 1


def test_values_that_are_nested_too_deep_to_compare_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(sys.getrecursionlimit() * 2):
        deep = [deep]
    with pytest.raises(QueryError, match="nested too deep"):
        ask("SELECT DISTINCT VALUE c.a FROM c", [{"a": deep}])


# --- while it runs --------------------------------------------------------------------------------------------------


def test_a_scalar_subquery_has_one_result() -> None:
    assert error_of("SELECT VALUE (SELECT VALUE x FROM x IN c.items) FROM c") == (
        "line 1, column 15: this subquery has more than one result: put it into ARRAY(…), or add TOP 1\n"
        "  SELECT VALUE (SELECT VALUE x FROM x IN c.items) FROM c\n"
        "                ^"
    )


@pytest.mark.parametrize("value", [-1, 1.5, "1", None, True])
def test_top_takes_a_whole_number_from_its_parameter(value: Any) -> None:
    assert "this takes a whole number from 0, got" in error_of("SELECT TOP @n * FROM c", {"n": value})


# --- parameters -----------------------------------------------------------------------------------------------------


def test_a_missing_parameter_is_shown_where_it_stands() -> None:
    assert error_of("c.a = @b") == "line 1, column 7: no value for @b: no parameters were passed\n  c.a = @b\n        ^"
    assert "no value for @b: there is @a" in error_of("c.a = @b", {"a": 1})


def test_a_parameter_that_is_not_used_is_refused() -> None:
    assert error_of("c.a = @a", {"a": 1, "@b": 2}) == "the query has no parameter @b, only @a"
    assert error_of("c.a = 1", {"b": 2}) == "the query has no parameter @b"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("a", "parameters are a mapping"),
        (5, "parameters are a mapping"),
        ({1: 2}, "the name of a parameter is a string"),
        ({"": 2}, "the name of a parameter is a string"),
        ({"@": 2}, "the name of a parameter is a string"),
        ({"a": 1, "@a": 1}, "the parameter @a was passed twice"),
        ([{"name": "@a"}], "a list of parameters has entries such as"),
        (["@a"], "a list of parameters has entries such as"),
        ([{"name": 1, "value": 1}], "the name of a parameter is a string"),
        ({"a": object()}, "the parameter @a is not JSON: /a is a object"),
        ({"a": float("nan")}, "the parameter @a is not JSON: /a is nan"),
        ({"a": [{"b": {1, 2}}]}, "the parameter @a is not JSON: /a/0/b is a set"),
        ({"a": 2**64}, "the parameter @a is not JSON: /a is an integer beyond 64 bits"),
        ({"a": "\ud800"}, "the parameter @a is not JSON: /a has a lone surrogate"),
        ({"a": (1, 2)}, "use a list"),
    ],
)
def test_a_malformed_parameter_is_refused(parameters: Any, message: str) -> None:
    assert message in error_of("c.a = @a", parameters)
