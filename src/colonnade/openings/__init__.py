"""What a run tells whom: declared as data before it begins, held to while it runs, and summed over runs.

`opening` is one line of such a declaration, `wire` says of every field of every message whether it can tell
anything, `limits` refuses what was not declared, `account` adds up, in figures and in words, and `leaks`
names what it comes to.
"""
