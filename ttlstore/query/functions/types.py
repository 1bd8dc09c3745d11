"""What type a value has, and a choice between two."""

from ttlstore.query.functions.registry import function
from ttlstore.query.values import UNDEFINED, Value, is_number


@function("IS_DEFINED", 1)
def is_defined(value: Value) -> Value:
    return value is not UNDEFINED


@function("IS_NULL", 1)
def is_null(value: Value) -> Value:
    return value is None


@function("IS_BOOL", 1)
def is_bool(value: Value) -> Value:
    return type(value) is bool


@function("IS_NUMBER", 1)
def _is_number(value: Value) -> Value:
    return is_number(value)


@function("IS_FINITE_NUMBER", 1)
def is_finite_number(value: Value) -> Value:
    return is_number(value)  # JSON has no other


@function("IS_INTEGER", 1)
def is_integer(value: Value) -> Value:
    return type(value) is int or (type(value) is float and value.is_integer())


@function("IS_STRING", 1)
def is_string(value: Value) -> Value:
    return type(value) is str


@function("IS_ARRAY", 1)
def is_array(value: Value) -> Value:
    return type(value) is list


@function("IS_OBJECT", 1)
def is_object(value: Value) -> Value:
    return type(value) is dict


@function("IS_PRIMITIVE", 1)
def is_primitive(value: Value) -> Value:
    return value is not UNDEFINED and type(value) not in (list, dict)


@function("IIF", 3)
def iif(condition: Value, then: Value, otherwise: Value) -> Value:
    return then if condition is True else otherwise
