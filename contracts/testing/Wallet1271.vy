# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title ERC-1271 wallet
@license Apache-2.0
@notice A wallet contract that answers signatures as its mode says, and calls what its owner asks. For tests only.
"""


APPROVING: constant(uint256) = 1
REFUSING: constant(uint256) = 2
REVERTING: constant(uint256) = 3
SHORT: constant(uint256) = 4
LONG: constant(uint256) = 5
DIRTY: constant(uint256) = 6
REVERTING_WITH_MAGIC: constant(uint256) = 7
EATING: constant(uint256) = 8
MAGIC: constant(bytes4) = 0x1626ba7e

mode: public(uint256)
expected: Bytes[1024]


@external
def answer(mode: uint256, expected: Bytes[1024]):
    """
    @notice Sets the answer.
    @param mode 1 approves the expected signature, 2 answers another word, 3 reverts, 4 answers 4 bytes, 5 answers two
           words, 6 answers the magic with rubbish behind it, 7 reverts with the magic, 8 eats all the gas that it is
           given; 0 answers nothing.
    @param expected The signature that mode 1 approves.
    """
    self.mode = mode
    self.expected = expected


@external
def execute(target: address, data: Bytes[4096]):
    """
    @notice Calls a contract as this wallet.
    """
    raw_call(target, data)


@external
@view
@raw_return
def isValidSignature(digest: bytes32, signature: Bytes[1024]) -> Bytes[64]:
    """
    @notice Answers as the mode says.
    """
    assert self.mode != REVERTING and digest != empty(bytes32), "wallet: no"
    if self.mode == EATING:
        raise UNREACHABLE
    magic: bytes32 = convert(MAGIC, bytes32)
    if self.mode == REVERTING_WITH_MAGIC:
        raw_revert(abi_encode(magic))
    if self.mode == APPROVING and signature == self.expected:
        return slice(concat(magic, magic), 0, 32)
    if self.mode == SHORT:
        return slice(concat(magic, magic), 0, 4)
    if self.mode == LONG:
        return concat(magic, magic)
    if self.mode == DIRTY:
        return slice(concat(MAGIC, magic), 0, 32)
    if self.mode == REFUSING or self.mode == APPROVING:
        return slice(concat(empty(bytes32), magic), 0, 32)
    return b""
