"""Passwords are kept out of errors that repeat what was typed: a URL may stand where something else was expected."""

import re

# Up to the last @: there may be one in a password that was not encoded.
_IN_URL = re.compile(r"(/[^\s:/@'\"]*):[^\s'\"]*@")
_IN_OPTION = re.compile(r"((?<![.\w])password=)('[^']*'|[^\s&'\"]+)", re.IGNORECASE)


def without_passwords(text: str) -> str:
    return _IN_OPTION.sub(r"\1…", _IN_URL.sub(r"\1@", text))
