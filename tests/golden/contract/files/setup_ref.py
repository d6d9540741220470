def reference(x, alpha, y):
    y.copy_(x * alpha)
