# %% [markdown]
# # Solutions to 1. One number at a time

# %%
import math

import minigrad as mg

# %% [markdown]
# ## 1. A number that is used twice
#
# Forward: $a + b = 3$ and $b + 1 = 2$, so $f = 6$. Backward: a product hands each factor the other one. So $a + b$
# gets 2 and $b + 1$ gets 3. A sum hands on what it got. So $a$ gets 2, and $b$ gets 2 from the first sum and 3 from
# the second: 5.


# %%
def f(a, b):
    return (a + b) * (b + 1)


h = 1e-6
by_nudging = (f(2 + h, 1) - f(2, 1)) / h, (f(2, 1 + h) - f(2, 1)) / h
print("by nudging:", by_nudging)

a, b = mg.tensor(2.0, requires_grad=True), mg.tensor(1.0, requires_grad=True)
f(a, b).backward()
print("minigrad:  ", a.grad, b.grad)
assert (a.grad.item(), b.grad.item()) == (2, 5)
assert math.isclose(by_nudging[0], 2, rel_tol=1e-5) and math.isclose(by_nudging[1], 5, rel_tol=1e-5)

# %% [markdown]
# ## 2. Nudging to both sides
#
# With a pencil: $\frac{(2 + h)^3 - 8}{h} = 12 + 6h + h^2$, so one nudge is wrong by about $6h$. To both sides
# everything but $h^2$ cancels. So when $h$ shrinks to a tenth, the first error shrinks to a tenth and the second to a
# hundredth.


# %%
def cube(x):
    return x**3


def one_side(h):
    return (cube(2 + h) - cube(2)) / h


def both_sides(h):
    return (cube(2 + h) - cube(2 - h)) / (2 * h)


for measured in (one_side, both_sides):
    large, small = (abs(measured(h) - 12) for h in (0.1, 0.01))
    print(f"{measured.__name__}: wrong by {large:.6f}, then by {small:.6f}: {large / small:.1f} times less")

assert math.isclose(one_side(0.01) - 12, 0.0601, rel_tol=1e-6)
assert math.isclose(both_sides(0.01) - 12, 0.0001, rel_tol=1e-6)

# %% [markdown]
# ## 3. Two rides
#
# The rides say $3w + b = 10$ and $8w + b = 20$. Subtract them: $5w = 10$, so $w = 2$ and $b = 4$. Our first guess of
# $w$ was right all along; it was the fee that was wrong. The long ride makes slopes steep, so that a rate of 0.02
# would jump too far and the error would grow without end. 0.01 is small enough, but then $b$, whose slope is flat,
# needs many steps.

# %%
rides = [(3.0, 10.0), (8.0, 20.0)]
w, b = mg.tensor(2.0, requires_grad=True), mg.tensor(1.0, requires_grad=True)
for number in range(3001):
    error = sum((w * x + b - y) ** 2 for x, y in rides)
    error.backward()
    if number in (0, 10, 100, 1000, 3000):
        print(f"step {number:4}: w = {w.item():.4f}, b = {b.item():.4f}, error = {error.item():.6f}")
    with mg.no_grad():
        w -= 0.01 * w.grad
        b -= 0.01 * b.grad
    w.grad = b.grad = None

assert math.isclose(w.item(), 2, abs_tol=1e-3) and math.isclose(b.item(), 4, abs_tol=5e-3)
