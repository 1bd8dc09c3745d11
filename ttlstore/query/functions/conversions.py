"""From values to strings and back. What stands in a string is read as JSON."""

import orjson

from ttlstore.errors import QueryError
from ttlstore.query.functions.registry import function
from ttlstore.query.functions.size import checked_value
from ttlstore.query.values import UNDEFINED, Value, is_number, number

_PLAIN = 1e21  # whole numbers below are written without an exponent, as in JavaScript


@function("TOSTRING", 1)
def to_string(value: Value) -> Value:
    if value is UNDEFINED or type(value) is str:
        return value
    if type(value) is float and value.is_integer() and abs(value) < _PLAIN:
        return str(int(value))
    try:
        return orjson.dumps(checked_value("TOSTRING", value)).decode()
    except TypeError:
        raise QueryError("TOSTRING cannot write a value that is nested so deep") from None


def _conversion(name: str, *kinds: type) -> None:
    """A function from a string to what stands in it, if it is of one of the types."""

    def run(text: Value) -> Value:
        if type(text) is not str:
            return UNDEFINED
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return UNDEFINED
        if type(value) not in kinds:
            return UNDEFINED
        return number(value) if is_number(value) else value

    function(name, 1)(run)


_conversion("STRINGTONUMBER", int, float)
_conversion("STRINGTOBOOLEAN", bool)
_conversion("STRINGTONULL", type(None))
_conversion("STRINGTOARRAY", list)
_conversion("STRINGTOOBJECT", dict)
