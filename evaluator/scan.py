"""provisional"""
def scan(source, backend):
    return []
