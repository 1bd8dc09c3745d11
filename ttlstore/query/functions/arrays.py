"""Arrays: what they contain, parts and combinations of them."""

from ttlstore.errors import QueryError
from ttlstore.query.functions.registry import function
from ttlstore.query.functions.size import MAX_ELEMENTS
from ttlstore.query.values import UNDEFINED, Value, identity, whole


@function("ARRAY_LENGTH", 1)
def array_length(array: Value) -> Value:
    return len(array) if type(array) is list else UNDEFINED


@function("ARRAY_CONTAINS", 2, 3)
def array_contains(array: Value, sought: Value, partial: Value = False) -> Value:
    """With `partial`, an object is found by some of its properties."""
    if type(array) is not list or sought is UNDEFINED or type(partial) is not bool:
        return UNDEFINED
    if partial and type(sought) is dict:
        wanted = {name: identity(value) for name, value in sought.items()}
        return any(
            type(item) is dict and all(name in item and identity(item[name]) == wanted[name] for name in wanted)
            for item in array
        )
    key = identity(sought)
    return any(identity(item) == key for item in array)


@function("ARRAY_CONTAINS_ANY", 2, None)
def array_contains_any(array: Value, *sought: Value) -> Value:
    """As an OR of ARRAY_CONTAINS: what is undefined leaves the answer open, unless something is found."""
    if type(array) is not list:
        return UNDEFINED
    keys = set(map(identity, array))
    if any(value is not UNDEFINED and identity(value) in keys for value in sought):
        return True
    return UNDEFINED if UNDEFINED in sought else False


@function("ARRAY_CONTAINS_ALL", 2, None)
def array_contains_all(array: Value, *sought: Value) -> Value:
    """As an AND of ARRAY_CONTAINS: what is undefined leaves the answer open, unless something is not found."""
    if type(array) is not list:
        return UNDEFINED
    keys = set(map(identity, array))
    if any(value is not UNDEFINED and identity(value) not in keys for value in sought):
        return False
    return UNDEFINED if UNDEFINED in sought else True


@function("ARRAY_SLICE", 2, 3)
def array_slice(array: Value, start: Value, *count: Value) -> Value:
    """From a position, which counts from the end if it is negative; all, or at most so many."""
    first, most = whole(start), whole(count[0]) if count else MAX_ELEMENTS
    if type(array) is not list or first is None or most is None:
        return UNDEFINED
    first = first if first >= 0 else max(len(array) + first, 0)
    return array[first:] if not count else array[first : first + max(most, 0)]


@function("ARRAY_CONCAT", 2, None)
def array_concat(*arrays: Value) -> Value:
    if any(type(array) is not list for array in arrays):
        return UNDEFINED
    if sum(map(len, arrays)) > MAX_ELEMENTS:
        raise QueryError(f"ARRAY_CONCAT would make an array of more than {MAX_ELEMENTS} elements")
    return [item for array in arrays for item in array]


@function("SETUNION", 2)
def set_union(left: Value, right: Value) -> Value:
    """Every different element of both."""
    if type(left) is not list or type(right) is not list:
        return UNDEFINED
    found: dict[object, Value] = {}
    for item in (*left, *right):
        found.setdefault(identity(item), item)
    return list(found.values())


@function("SETINTERSECT", 2)
def set_intersect(left: Value, right: Value) -> Value:
    """Every different element of the left one that is in the right one too."""
    if type(left) is not list or type(right) is not list:
        return UNDEFINED
    keys = set(map(identity, right))
    found: dict[object, Value] = {}
    for item in left:
        key = identity(item)
        if key in keys:
            found.setdefault(key, item)
    return list(found.values())
