"""Differences that are known, each with the reason and the issue's row; they do not fail. An entry is narrow: it must match the
smallest script that shows the difference, and the difference itself.

A file of sections:

    [name]
    database = postgres              one or several, by blanks
    script = (?s)regular expression  found in the statements of the smallest script, one a line: `A: SELECT 1`
    difference = regular expression  found in the difference as it is printed
    steps = 6                        the smallest script has no more steps than this
    row = issue 13, PostgreSQL 9     where it is written down
    reason = a sentence
    anywhere = yes                   the difference says all: `script` is found in the session, however large it still is
    seldom = regular expression      statements that are drawn in one session of eight only, so that the time goes into what is not known
"""

import configparser
import os
import re

PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "known.ini")


class Known:
    def __init__(self, path=PATH):
        parser = configparser.RawConfigParser(interpolation=None)
        parser.read(path, encoding="utf-8")
        self.entries = []
        self.seldoms = []
        for name in parser.sections():
            entry = dict(parser[name])
            for needed in ("database", "script", "difference", "steps", "row", "reason"):
                if not entry.get(needed):
                    raise SystemExit(f"{path}: {name} has no {needed}")
            if entry.get("seldom"):
                self.seldoms.append((entry["database"].split(), entry["seldom"]))
            self.entries.append((name, entry["database"].split(), re.compile(entry["script"]), re.compile(entry["difference"]),
                                 int(entry["steps"]), entry["row"], entry.get("anywhere") == "yes"))

    def match(self, script, difference, failing=None):
        """The name of the entry that excuses this, or None. `failing`: the step that was answered otherwise, of a script that was not
        made smaller."""
        texts, said = (failing or script).texts(), difference.to_text()
        for name, databases, pattern, seen, steps, _, anywhere in self.entries:
            small = failing or anywhere or len(script.steps) <= steps
            if script.database in databases and small and pattern.search(script.texts() if anywhere else texts) and seen.search(said):
                return name
        return None

    def seldom(self, database):
        """What most sessions do not draw, as one expression, or None."""
        found = [pattern for databases, pattern in self.seldoms if database in databases]
        return re.compile("|".join(found)) if found else None

    def of(self, database):
        return [entry for entry in self.entries if database in entry[1]]
