"""Loops written by hand: one adapter lets them keep their own order of events and still owe what every call owes."""
