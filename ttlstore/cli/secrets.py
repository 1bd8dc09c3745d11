"""Passwords are kept out of errors that repeat what was typed: a URL may stand where something else was expected."""

import re
from collections.abc import Iterable

from ttlstore.errors import shown

# Up to the last @: there may be one in a password that was not encoded.
_IN_URL = re.compile(r"(/[^\s:/@'\"]*):(?!password@)[^\s'\"]*@")  # but for the one in our own examples
_IN_OPTION = re.compile(r"((?<![.\w])\w*password\s*=\s*)('(?:\\.|[^'\\])*'|(?:\\.|[^\s&'\"\\])+)", re.IGNORECASE)
# Of a word that was typed it is known where it ends: nothing that a password may hold is mistaken for its end.
_IN_WORD = re.compile(r"(.*?//[^:/?@]*):.*@", re.DOTALL)
_WITHOUT_HOST = re.compile(r"(.*?postgres[a-z+0-9]*:?//[^:/?@\[]*):(?!\d*([/?,]|$)).*", re.IGNORECASE | re.DOTALL)


def without_passwords(text: str, typed: Iterable[str] = ()) -> str:
    """The text, which may repeat words of the command line: `typed` are all of those."""
    for word in typed:
        bare = _IN_OPTION.sub(r"\1…", _WITHOUT_HOST.sub(r"\1…", _IN_WORD.sub(r"\1@", word)))
        for as_said in (repr, shown, str):
            text = text.replace(as_said(word), as_said(bare))
    return _IN_OPTION.sub(r"\1…", _IN_URL.sub(r"\1@", text))
