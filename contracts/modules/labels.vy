# pragma version ~=0.4.3
"""
@title Labels
@license Apache-2.0
@notice The grammar of categories and capabilities: a lower-case letter or digit, then letters, digits, dots and
        hyphens, and colons where allowed; 1 to 64 characters.
"""


MAX_LABEL: constant(uint256) = 64


@internal
@pure
def _is_word_byte(code: uint256) -> bool:
    """
    @notice Says whether a byte is a digit or a lower-case letter.
    """
    return (code >= 48 and code <= 57) or (code >= 97 and code <= 122)


@internal
@pure
def _is_label(label: String[MAX_LABEL], allow_colon: bool) -> bool:
    """
    @notice Says whether a text is a label.
    @param label The text.
    @param allow_colon Whether colons may stand behind the first character.
    """
    if len(label) == 0:
        return False
    for i: uint256 in range(len(label), bound=MAX_LABEL):
        code: uint256 = convert(convert(slice(label, i, 1), Bytes[1]), uint256)
        if self._is_word_byte(code):
            continue
        if i == 0:
            return False
        if code != 45 and code != 46 and not (allow_colon and code == 58):
            return False
    return True
