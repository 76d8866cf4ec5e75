"""The error for an answer that is not as its protocol has it: whose it is, what is wrong with it, what to do next."""

from hostler.ports import UnreachableError

MOST = 300
"""Characters of the reason that are told: readers quote what they were sent."""


def unreadable(whose: str, wrong: object, instead: str) -> UnreachableError:
    """Make the error for an answer that cannot be read; whatever was asked for may have happened all the same.

    `whose` names the answer ("the API server's list of pods"), `wrong` is the reader's complaint ("Expected `object`,
    got `array`"), `instead` what a person does next.
    """
    return UnreachableError(f"{whose} cannot be read: {str(wrong)[:MOST]}; {instead}")
