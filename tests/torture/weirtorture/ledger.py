"""What one client knows of its writes, and what the tables may therefore hold.

Owns: the outcome of every write, by the numbers of its rows. Must not know: how it was written or what disturbed it.
Invariants: a number is used once. What was acknowledged is there exactly once, what was refused never, what is unknown at most once; of an
unknown write that is atomic, all rows or none; of one that is not, the first ones.
"""

ACKNOWLEDGED, REFUSED, UNKNOWN = "acknowledged", "refused", "unknown"


class Write:
    """Rows that were sent together."""

    def __init__(self, numbers, atomic=True):
        self.numbers, self.atomic = tuple(numbers), atomic
        self.outcome = UNKNOWN
        self.seen = None  # how many of its rows a check has found, once one has

    def complaint(self, counts):
        """What is wrong with how often each of its rows is there; None if nothing."""
        what = f"write {self.numbers}, {self.outcome}"
        for number, count in zip(self.numbers, counts, strict=True):
            if count > 1:
                return f"{what}: row {number} is there {count} times"
        if self.outcome == ACKNOWLEDGED and not all(counts):
            return f"{what}: rows there {counts}: acknowledged and lost"
        if self.outcome == REFUSED and any(counts):
            return f"{what}: rows there {counts}: refused and done"
        if self.atomic and len(set(counts)) > 1:
            return f"{what}: rows there {counts}: a half of a transaction"
        if sorted(counts, reverse=True) != list(counts):
            return f"{what}: rows there {counts}: a later statement without an earlier one"
        return None


class Ledger:
    """Of one client. `number` gives the next number; what was written is settled by `check`."""

    def __init__(self):
        self.last = 0
        self.open = []  # writes since the last check
        self.late = {}  # number of a row: an unknown write of before that may still come
        self.low = self.high = 0  # what the client's counter may be
        self.checked = 0

    def number(self):
        self.last += 1
        return self.last

    def begin(self, count=1, atomic=True):
        """A write is about to be sent."""
        write = Write([self.number() for _ in range(count)], atomic)
        self.open.append(write)
        return write

    def added(self, outcome):
        """One was added to the counter: for sure, perhaps, or not."""
        self.low += outcome == ACKNOWLEDGED
        self.high += outcome != REFUSED

    def glance(self, found, whole):
        """The client has read its own rows, the newest first; `whole`: there are no older ones. What is wrong, or None."""
        if len(set(found)) != len(found):
            return f"rows come twice: {found}"
        oldest = 0 if whole else found[-1]
        there = set(found)
        for write in reversed(self.open):
            if write.numbers[0] < oldest:
                break
            counts = [int(n in there) for n in write.numbers]
            if write.outcome != UNKNOWN and (complaint := write.complaint(counts)):
                return complaint
        return None

    def check(self, rows, counter):
        """`rows`: {number: how often it is in the table}; they are then taken out of it. Complaints, and whatever is not known yet is kept."""
        rows = dict(rows)
        complaints = []
        for write in self.open:
            counts = [rows.pop(n, 0) for n in write.numbers]
            if complaint := write.complaint(counts):
                complaints.append(complaint)
            self.checked += 1
            if write.outcome == UNKNOWN and not all(counts):
                write.seen = counts
                self.late.update(dict.fromkeys(write.numbers, write))
        self.open = []
        complaints += self.check_late(rows)
        complaints += [f"row {n} is there {count} times, and was there before or never written" for n, count in rows.items()]
        if not self.low <= counter <= self.high:
            complaints.append(f"the counter is {counter}, not {self.low} to {self.high}")
        self.low = max(self.low, min(counter, self.high))
        return complaints

    def check_late(self, rows):
        complaints = []
        for write in set(self.late.values()):
            counts = [rows.pop(n, 0) for n in write.numbers]
            if not any(counts):
                continue
            write.seen = [a + b for a, b in zip(write.seen, counts, strict=True)]
            if complaint := write.complaint(write.seen):
                complaints.append(complaint)
            if all(write.seen):
                for n in write.numbers:
                    self.late.pop(n)
        return complaints
