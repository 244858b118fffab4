"""A machine that is not run for a while, as the kernel counts it."""


class StolenTime:
    """What share of the processors' time the machine below us took in a block of code: a virtual
    machine that is not run for a while answers late, whatever is tested on it."""

    def __enter__(self):
        self.before = self.ticks()
        return self

    def __exit__(self, *_):
        stolen, every = (after - before for after, before in zip(self.ticks(), self.before))
        self.share = stolen / max(every, 1)

    @property
    def excuse(self):
        """The share of answers that may be late without a fault of ours: none on a machine that
        runs, else as many as came while it did not."""
        return self.share if self.share >= 0.01 else 0.0

    @staticmethod
    def ticks():
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
        return ticks[7], sum(ticks)
