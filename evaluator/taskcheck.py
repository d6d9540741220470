"""provisional"""


class TaskExaminer:
    def __init__(self, declared=None):
        self.cases = 0
        self.told_apart = {}

    def add(self, inputs, oracle, native, *, stretched, exact):
        self.cases += 1

    def tell_apart(self, oracle, native, lower):
        self.told_apart = {"x": True}

    def result(self):
        return {"refused": False, "reasons": (), "told_apart": self.told_apart}
