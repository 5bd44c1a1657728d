"""Data: from files to each party's numbers.

A `RawTable` is a file as read, a `PartyData` one party's columns and how to prepare them, a `Table` finite
numbers. Nothing is imported here, so that a party's process loads only what it needs.
"""
