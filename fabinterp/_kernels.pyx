# Written from the notebooks' cells `#| cython`; see nbs/rows/06_kernels.ipynb.
# cython: language_level=3, infer_types=True, cdivision=True
# cython: boundscheck=False, wraparound=False, initializedcheck=False
import cython
import numpy as np
from cython.cimports.libc.math import exp, fabs, log, sqrt

Size = cython.typedef(cython.Py_ssize_t)
Vector = cython.typedef(cython.double[::1])
Matrix = cython.typedef(cython.double[:, ::1])
Places = cython.typedef(cython.Py_ssize_t[::1])
PlaceTable = cython.typedef(cython.Py_ssize_t[:, ::1])
Flags = cython.typedef(cython.uchar[::1])
# of arguments, which may be views and may not be changed
Column = cython.typedef(cython.const[cython.double][:])
Table = cython.typedef(cython.const[cython.double][:, :])
Tables = cython.typedef(cython.const[cython.double][:, :, :])
RowSet = cython.typedef(cython.const[cython.int][::1])


_NARROW = 32  # number of columns beyond which BLAS is faster


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_moments(A: Table, w: Column, rows: RowSet, block: Matrix, moments: Matrix) -> cython.void:
    """Add the products of four rows at a time, on and below the diagonal; then mirror them."""
    p = A.shape[1]
    for start in range(0, rows.shape[0], 4):
        for k in range(4):
            weight: cython.double = 0.0
            row: Size = rows[0]
            if start + k < rows.shape[0]:
                row = rows[start + k]
                weight = w[row]
            for j in range(p):
                block[k, j] = A[row, j]
                block[k + 4, j] = weight * A[row, j]
        for i in range(p):
            first = block[4, i]
            second = block[5, i]
            third = block[6, i]
            fourth = block[7, i]
            for j in range(i + 1):
                moments[i, j] += (
                    first * block[0, j]
                    + second * block[1, j]
                    + third * block[2, j]
                    + fourth * block[3, j]
                )
    for i in range(p):
        for j in range(i):
            moments[j, i] = moments[i, j]


def moments_of_sets_kernel(A: Table, w: Column, sets):
    """`_moments_of_sets`."""
    p = A.shape[1]
    result = np.zeros((len(sets), p, p))
    moments: cython.double[:, :, ::1] = result
    block: Matrix = np.empty((8, p))
    for s in range(len(sets)):
        if p > _NARROW:
            table = np.asarray(A)[sets[s]]
            result[s] = table.T @ (table * np.asarray(w)[sets[s]][:, None])
        else:
            rows: RowSet = np.ascontiguousarray(sets[s], np.int32)
            with cython.nogil:
                _add_moments(A, w, rows, block, moments[s])
    return result


_TOL = cython.declare(cython.double, 1e-9)
_SETTLED = cython.declare(cython.double, 1e-5)
_INFINITY = cython.declare(cython.double, float("inf"))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _first_largest_kernel(gain: Vector, inside: Flags, chosen: cython.uchar) -> Size:
    """`_first_largest` of the units that are chosen, or of those that are not; -1: there is none."""
    found: Size = -1
    for k in range(inside.shape[0]):
        if inside[k] == chosen and (found < 0 or gain[k] > gain[found]):
            found = k
    if found >= 0:
        least = gain[found] - _TOL * fabs(gain[found])
        for k in range(found):
            if inside[k] == chosen and gain[k] >= least:
                return k
    return found


@cython.final
@cython.cclass
class Climb:
    """State of `_climb`: the bordered table, its floors, the columns inside, the chosen units."""

    table: Matrix
    members: PlaceTable
    units: Places
    floor: Vector
    gain: Vector
    inside: Flags
    chosen: Flags
    work: Matrix
    block: Matrix

    def __init__(self, p, n_targets, members, units):
        size = p + n_targets
        self.table = np.zeros((size, size))
        self.members = np.array(members, np.intp)
        self.units = np.array(units, np.intp)
        self.floor = np.empty(p)
        self.gain = np.empty(len(units))
        self.inside = np.empty(p, np.uint8)
        self.chosen = np.empty(len(units), np.uint8)
        self.work = np.empty((2, size))
        self.block = np.empty((members.shape[1], members.shape[1] + n_targets))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def sweep(self, k: Size, sign: cython.double) -> cython.void:
        """`_sweep`."""
        table = self.table
        work = self.work
        size = table.shape[0]
        pivot = table[k, k]
        for j in range(size):
            work[0, j] = table[k, j]
            work[1, j] = table[k, j] / pivot
        for i in range(size):
            value = work[0, i]
            if value != 0.0:
                for j in range(size):
                    table[i, j] -= value * work[1, j]
        for j in range(size):
            table[k, j] = table[j, k] = sign * work[1, j]
        table[k, k] = -1 / pivot
        self.inside[k] = sign > 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def bring_in(self, unit: Size) -> cython.void:
        """`_bring_in` of a unit."""
        for i in range(self.members.shape[1]):
            k = self.members[unit, i]
            if k >= 0 and not self.inside[k] and self.table[k, k] > self.floor[k]:
                self.sweep(k, 1.0)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def take_out(self, unit: Size) -> cython.void:
        """`_take_out` of a unit."""
        for i in range(self.members.shape[1]):
            k = self.members[unit, i]
            if k >= 0 and self.inside[k]:
                self.sweep(k, -1.0)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def column_gain(self, k: Size) -> cython.double:
        """`_gains` of a column."""
        pivot = self.table[k, k]
        gain: cython.double = 0.0
        if self.inside[k] or pivot > self.floor[k]:
            for j in range(self.floor.shape[0], self.table.shape[0]):
                gain += self.table[k, j] * self.table[k, j]
        return gain / (2 * pivot) if gain > 0.0 else 0.0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def unit_gain(self, unit: Size) -> cython.double:
        """`_group_gains` of a unit."""
        if self.members.shape[1] == 1:
            return self.column_gain(self.members[unit, 0])
        block = self.block
        p = self.floor.shape[0]
        n_targets = self.table.shape[0] - p
        size: Size = 0
        enters: cython.bint = True
        while size < self.members.shape[1] and self.members[unit, size] >= 0:
            enters = enters and not self.inside[self.members[unit, size]]
            size += 1
        for i in range(size):
            k = self.members[unit, i]
            for j in range(size):
                block[i, j] = self.table[k, self.members[unit, j]]
            for j in range(n_targets):
                block[i, size + j] = self.table[k, p + j]
        gain: cython.double = 0.0
        for i in range(size):
            k = self.members[unit, i]
            pivot = block[i, i]
            if not (self.inside[k] or (enters and pivot > self.floor[k])):
                continue
            for j in range(size, size + n_targets):
                gain += 0.5 * block[i, j] * block[i, j] / pivot
            for later in range(i + 1, size):
                rate = block[later, i] / pivot
                for j in range(i + 1, size + n_targets):
                    block[later, j] -= rate * block[i, j]
        return gain

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def begin(self, always: Places, start: Flags) -> cython.void:
        """Bring the columns `always` and the units of `start` into a filled table."""
        for k in range(self.floor.shape[0]):
            self.floor[k] = _TOL * self.table[k, k]
            self.inside[k] = False
        for i in range(always.shape[0]):
            k = always[i]
            if self.table[k, k] > self.floor[k]:
                self.sweep(k, 1.0)
        for unit in range(self.units.shape[0]):
            is_first: cython.bint = False
            for i in range(self.members.shape[1]):
                k = self.members[unit, i]
                is_first = is_first or (k >= 0 and start[k])
            if is_first:
                self.bring_in(unit)
            self.chosen[unit] = False
            for i in range(self.members.shape[1]):
                k = self.members[unit, i]
                if k >= 0 and self.inside[k]:
                    self.chosen[unit] = True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def run(self, price: cython.double, max_size: Size) -> cython.double:
        """`_forward_backward`; return the gain."""
        gain = self.gain
        units = self.units
        p = self.floor.shape[0]
        n_free = max_size
        for u in range(units.shape[0]):
            n_free -= units[u] * self.chosen[u]
        for _ in range(20 * (p + 1)):
            for u in range(units.shape[0]):
                if self.chosen[u]:
                    gain[u] = self.unit_gain(u) + price * units[u]
                else:
                    gain[u] = self.unit_gain(u) - price * units[u]
                    if units[u] > n_free:
                        gain[u] = -_INFINITY
            u = _first_largest_kernel(gain, self.chosen, True)
            if u < 0 or not (gain[u] > _TOL * price * units[u] or n_free < 0):
                u = _first_largest_kernel(gain, self.chosen, False)
                if u < 0 or not gain[u] > _TOL * price * units[u]:
                    break
            n_free += units[u] if self.chosen[u] else -units[u]
            self.chosen[u] = not self.chosen[u]
            if not self.chosen[u]:
                self.take_out(u)
            for u in range(units.shape[0]):
                if self.chosen[u]:
                    self.bring_in(u)
        value: cython.double = 0.0
        for i in range(p, self.table.shape[0]):
            value -= 0.5 * self.table[i, i]
        for u in range(units.shape[0]):
            value -= price * units[u] * self.chosen[u]
        return value


def climb_kernel(gram, cross, price, start, always, members, units, max_size):
    """`_climb`."""
    p, n_targets = cross.shape
    climb = Climb(p, n_targets, members, units)
    table = np.asarray(climb.table)
    table[:p, :p] = gram
    table[:p, p:] = cross
    table[p:, :p] = cross.T
    wanted = np.zeros(p, np.uint8)
    wanted[start] = True
    climb.begin(always, wanted)
    gain = climb.run(price, max_size)
    inside = np.asarray(climb.inside, bool)
    coef = np.where(inside[:, None], table[:p, p:], 0.0)
    inside[always] = False
    return coef, np.flatnonzero(inside), gain


def foba_many_kernel(grams: Tables, crosses: Table, prices: Column, most: Places):
    """`foba_many`."""
    p = crosses.shape[1]
    coefs = np.zeros((crosses.shape[0], p))
    gains = np.empty(crosses.shape[0])
    coef: Matrix = coefs
    gain: Vector = gains
    climb: Climb = Climb(p, 1, np.arange(1, p)[:, None], np.ones(p - 1))
    table: Matrix = climb.table
    always: Places = np.zeros(1, int)
    nothing: Flags = np.zeros(p, np.uint8)
    with cython.nogil:
        for b in range(crosses.shape[0]):
            for i in range(p):
                for j in range(p):
                    table[i, j] = grams[b, i, j]
                table[i, p] = table[p, i] = crosses[b, i]
            table[p, p] = 0.0
            climb.begin(always, nothing)
            gain[b] = climb.run(prices[b], most[b])
            for i in range(p):
                if climb.inside[i]:
                    coef[b, i] = table[i, p]
    return coefs, gains


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _solve_kernel(H: Matrix, g: Vector, size: Size, step: Vector) -> cython.double:
    """Solve H step = g by Cholesky's factor, which replaces the lower triangle of H; gᵀ H⁻¹ g."""
    left: cython.double
    for j in range(size):
        for i in range(j, size):
            left = H[i, j]
            for k in range(j):
                left -= H[i, k] * H[j, k]
            H[i, j] = left / H[j, j] if i > j else sqrt(left)
    rise: cython.double = 0.0
    for j in range(size):
        left = g[j]
        for k in range(j):
            left -= H[j, k] * step[k]
        step[j] = left / H[j, j]
        rise += step[j] * step[j]
    for j in range(size - 1, -1, -1):
        left = step[j]
        for k in range(j + 1, size):
            left -= H[k, j] * step[k]
        step[j] = left / H[j, j]
    return rise


# rows, a multiple of 4, whose weights are kept at a time
_BLOCK = cython.declare(cython.Py_ssize_t, 64)


@cython.final
@cython.cclass
class ClassRows:
    """Rows of a search for classes, and the columns S of its evaluations.

    Parameters come contrast by contrast, a column of S after the other in each.
    """

    X: Table
    Y: Table
    w: Column
    contrasts: Table  # (C, K)
    ridge: Vector
    columns: Places
    n_columns: Size
    x: Matrix  # (n + 3, p) the columns S, then rows of zeros
    bend: Matrix  # (B, K²) of a block of rows: the weights of (fab.50)
    eta: Vector  # (K,) scores of the contrasts
    prob: Vector  # (C,)
    slope: Vector
    curvature: Matrix
    step: Vector
    trial: Vector

    def __init__(self, X, Y, w, contrasts, ridge):
        p = X.shape[1]
        n_classes, K = contrasts.shape
        self.X = X
        self.Y = Y
        self.w = w
        self.contrasts = contrasts
        self.ridge = ridge
        self.columns = np.arange(p)
        self.n_columns = 0
        self.x = np.zeros((len(X) + 3, p))
        self.bend = np.zeros((_BLOCK, K * K))
        self.eta = np.empty(K)
        self.prob = np.empty(n_classes)
        self.slope = np.empty(K * p)
        self.curvature = np.empty((K * p, K * p))
        self.step = np.empty(K * p)
        self.trial = np.empty(K * p)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def evaluate(self, theta: Vector, again: cython.bint) -> cython.double:
        """`_evaluate_parameters`; `again`: slope and curvature, too."""
        Y = self.Y
        w = self.w
        contrasts = self.contrasts
        x = self.x
        eta = self.eta
        prob = self.prob
        size = self.n_columns
        K = eta.shape[0]
        if again:
            self.slope[: K * size] = 0.0
            self.curvature[: K * size, : K * size] = 0.0
        value: cython.double = 0.0
        n = Y.shape[0]
        first: Size = 0
        for row in range(n):
            for a in range(K):
                score: cython.double = 0.0
                for i in range(size):
                    score += x[row, i] * theta[a * size + i]
                eta[a] = score
            largest = -_INFINITY
            for c in range(prob.shape[0]):
                score = 0.0
                for a in range(max(c - 1, 0), K):
                    score += contrasts[c, a] * eta[a]
                prob[c] = score
                largest = max(largest, score)
            likelihood: cython.double = 0.0
            total: cython.double = 0.0
            for c in range(prob.shape[0]):
                score = prob[c] - largest
                likelihood += Y[row, c] * score
                prob[c] = exp(score)
                total += prob[c]
            value += w[row] * (likelihood - log(total))
            if again:
                for c in range(prob.shape[0]):
                    prob[c] /= total
                self.add_slope(row, row - first)
                if row - first == _BLOCK - 1 or row == n - 1:
                    self.bend[row - first + 1 :] = 0.0
                    self.add_curvature(first, row + 1)
                    first = row + 1
        return value - self.finish(theta, again)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def add_slope(self, row: Size, at: Size) -> cython.void:
        """Add the slope of a row (fab.49), and keep its weights of (fab.50)."""
        size = self.n_columns
        K = self.eta.shape[0]
        weight = self.w[row]
        for a in range(K):
            mean: cython.double = 0.0
            square: cython.double = 0.0
            pull: cython.double = 0.0
            for c in range(a + 2):
                share = self.prob[c] * self.contrasts[c, a]
                mean += share
                square += share * self.contrasts[c, a]
                pull += self.Y[row, c] * self.contrasts[c, a]
            self.eta[a] = mean
            pull = weight * (pull - mean)
            for i in range(size):
                self.slope[a * size + i] += pull * self.x[row, i]
            rest = weight * (self.contrasts[0, a] - mean)
            for b in range(a):
                self.bend[at, a * K + b] = rest * self.eta[b]
            self.bend[at, a * K + a] = weight * (square - mean * mean)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def add_curvature(self, first: Size, end: Size) -> cython.void:
        """Add what a block of rows has of (fab.50), on and below the diagonal of each block of H."""
        size = self.n_columns
        K = self.eta.shape[0]
        x = self.x
        v = self.bend
        curvature = self.curvature
        for a in range(K):
            for b in range(a + 1):
                pair = a * K + b
                for row in range(first, end, 4):
                    at = row - first
                    for i in range(size):
                        v0 = v[at, pair] * x[row, i]
                        v1 = v[at + 1, pair] * x[row + 1, i]
                        v2 = v[at + 2, pair] * x[row + 2, i]
                        v3 = v[at + 3, pair] * x[row + 3, i]
                        k = a * size + i
                        for j in range(i + 1):
                            curvature[k, b * size + j] += (
                                v0 * x[row, j]
                                + v1 * x[row + 1, j]
                                + (v2 * x[row + 2, j] + v3 * x[row + 3, j])
                            )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def finish(self, theta: Vector, again: cython.bint) -> cython.double:
        """Add the ridge and mirror the blocks; return the loss by the ridge."""
        size = self.n_columns
        K = self.eta.shape[0]
        curvature = self.curvature
        bending: cython.double = 0.0
        for a in range(K):
            for i in range(size):
                k = a * size + i
                bent = self.ridge[self.columns[i]] * theta[k]
                bending += 0.5 * bent * theta[k]
                if again:
                    self.slope[k] -= bent
                    self.curvature[k, k] += self.ridge[self.columns[i]]
        if again:
            for a in range(K):
                for b in range(a):
                    for i in range(size):
                        for j in range(i):
                            curvature[a * size + j, b * size + i] = curvature[
                                a * size + i, b * size + j
                            ]
        return bending

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def newton(self, theta: Vector) -> cython.double:
        """`newton_search` in the columns S, in place; return the value."""
        size = self.eta.shape[0] * self.n_columns
        value = self.evaluate(theta, True)
        for _ in range(100):
            rise = _solve_kernel(self.curvature, self.slope, size, self.step)
            if not rise >= 0.0:
                break
            again: cython.bint = rise >= _SETTLED
            share = 2.0
            found = value
            while share == 2.0 or (found < value + 0.1 * share * rise and share > 1e-6):
                share /= 2
                for j in range(size):
                    self.trial[j] = theta[j] + share * self.step[j]
                found = self.evaluate(self.trial, again)
            if not found > value:
                break
            value = found
            theta[:size] = self.trial[:size]
            if not again:
                break
        return value

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def choose_columns(self, theta: Vector, climb: Climb) -> Size:
        """Let S be the intercept and the units with a parameter in theta; return their number of prices.

        climb: of units whose first columns are those of the first contrast.
        """
        p = self.ridge.shape[0]
        units: Size = 0
        self.columns[0] = 0
        self.n_columns = 1
        for u in range(climb.units.shape[0]):
            used: cython.bint = False
            for i in range(climb.members.shape[1]):
                k = climb.members[u, i]
                used = used or (k >= 0 and theta[k] != 0.0)
            if not used:
                continue
            units += climb.units[u]
            for i in range(climb.members.shape[1]):
                k = climb.members[u, i]
                if 0 <= k < p:
                    self.columns[self.n_columns] = k
                    self.n_columns += 1
        return units

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def fit_support(
        self, theta: Vector, price: cython.double, climb: Climb, fitted: Vector
    ) -> cython.double:
        """`_fit_support`, theta (K p,) in place."""
        p = self.ridge.shape[0]
        units = self.choose_columns(theta, climb)
        self.read()
        size = self.n_columns
        for a in range(self.eta.shape[0]):
            for i in range(size):
                fitted[a * size + i] = theta[a * p + self.columns[i]]
        value = self.newton(fitted)
        for a in range(self.eta.shape[0]):
            for i in range(size):
                theta[a * p + self.columns[i]] = fitted[a * size + i]
        return value - price * units

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def value_of(self, theta: Vector, price: cython.double, climb: Climb) -> cython.double:
        """Return the value of parameters (K p,) less ridge and prices."""
        units = self.choose_columns(theta, climb)
        self.read_all()
        return self.evaluate(theta, False) - price * units

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read_all(self) -> cython.void:
        """Let S be all columns."""
        self.n_columns = self.columns.shape[0]
        for j in range(self.n_columns):
            self.columns[j] = j
        self.read()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read(self) -> cython.void:
        """Copy the columns S."""
        for row in range(self.X.shape[0]):
            for i in range(self.n_columns):
                self.x[row, i] = self.X[row, self.columns[i]]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill_kernel(climb: Climb, theta: Vector, slope: Vector, curvature: Matrix) -> cython.void:
    """Fill the table of (fab.52) at theta."""
    table = climb.table
    size = theta.shape[0]
    for i in range(size):
        table[i, size] = slope[i]
        for j in range(size):
            table[i, j] = curvature[max(i, j), min(i, j)]
            table[i, size] += table[i, j] * theta[j]
        table[size, i] = table[i, size]
    table[size, size] = 0.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _take_proposal_kernel(climb: Climb, theta: Vector, trial: Vector, p: Size) -> cython.bint:
    """Copy what FoBa chose to trial; return whether its columns differ from those of theta."""
    size = theta.shape[0]
    differs: cython.bint = False
    for j in range(p):
        is_in: cython.bint = False
        was_in: cython.bint = False
        for a in range(size // p):
            k = a * p + j
            trial[k] = climb.table[k, size] if climb.inside[k] else 0.0
            is_in = is_in or trial[k] != 0.0
            was_in = was_in or theta[k] != 0.0
        differs = differs or is_in != was_in
    return differs


def softmax_kernel(
    X: Table, Y: Table, w: Column, price, start, contrasts, ridge, of_all, units, max_size: Size
):
    """`_softmax`."""
    p: Size = X.shape[1]
    K: Size = contrasts.shape[1]
    squares = np.asarray(w) @ np.square(X)
    least = np.maximum(1e-6 * squares, 1e-100)
    curve_ridge: Vector = np.zeros(p) if ridge is None else ridge
    rows: ClassRows = ClassRows(X, Y, w, contrasts, least + curve_ridge)
    climb: Climb = Climb(K * p, 1, of_all, units)
    first = 2 * (contrasts.T @ start.T).ravel()
    best = first.copy()
    first_theta: Vector = first
    theta: Vector = best
    trial: Vector = np.empty(K * p)
    fitted: Vector = np.empty(K * p)
    slope: Vector = np.empty(K * p)
    curvature: Matrix = np.empty((K * p, K * p))
    always: Places = p * np.arange(K)
    begin: Flags = np.empty(K * p, np.uint8)
    widest: Size = max(units, default=0)
    column_price: cython.double = K * price
    with cython.nogil:
        value = rows.fit_support(theta, column_price, climb, fitted)
        better: cython.bint = True
        while better:
            better = False
            held = rows.choose_columns(theta, climb)
            if held + max_size == 0:
                break
            rows.read_all()
            rows.evaluate(theta, True)
            slope[:] = rows.slope
            curvature[:] = rows.curvature
            for proposal in range(3):
                _fill_kernel(climb, theta, slope, curvature)
                for k in range(theta.shape[0]):
                    begin[k] = theta[k] != 0.0
                climb.begin(always, begin)
                share = 1.0 if proposal == 0 else (0.25 if proposal == 1 else 2.0)
                most = min(max_size, held + widest) if proposal == 1 else max_size
                climb.run(share * column_price, most)
                if not _take_proposal_kernel(climb, theta, trial, p):
                    continue
                worth = rows.fit_support(trial, column_price, climb, fitted)
                if worth > value + 1e-6:
                    value = worth
                    theta[:] = trial
                    better = True
                    break
        rows.ridge = curve_ridge
        value = rows.value_of(theta, column_price, climb)
        worth = rows.value_of(first_theta, column_price, climb)
    if worth > value:
        return start, worth
    return best.reshape(K, p).T @ contrasts.T, value


def divide_rows_kernel(rows, yes, w: Column):
    """`_divide_rows`."""
    row: RowSet = np.ascontiguousarray(rows, np.int32)
    is_yes: cython.const[cython.uchar][::1] = yes.view(np.uint8)
    sorted_rows = np.empty(row.shape[0], np.int32)
    place: cython.int[::1] = sorted_rows
    n_yes: Size = 0
    weight: cython.double = 0.0
    other_weight: cython.double = 0.0
    with cython.nogil:
        for i in range(row.shape[0]):
            n_yes += is_yes[row[i]]
        yes_end: Size = 0
        no_end: Size = n_yes
        for i in range(row.shape[0]):
            if is_yes[row[i]]:
                place[yes_end] = row[i]
                yes_end += 1
                weight += w[row[i]]
            else:
                place[no_end] = row[i]
                no_end += 1
                other_weight += w[row[i]]
    return sorted_rows[:n_yes], sorted_rows[n_yes:], weight, other_weight


def split_sums_kernel(cuts, codes, parts):
    """`_split_sums`, by a histogram of each feature and its sums from the last cell to the first."""
    sums = np.zeros((len(cuts), parts.shape[1]))
    code: cython.Py_ssize_t[:, ::1] = np.ascontiguousarray(codes.T, np.intp)
    out: Matrix = sums
    table: Matrix = np.ascontiguousarray(parts)
    feature: Places = cuts.feature.astype(np.intp)
    cell: Places = cuts.cell.astype(np.intp)
    missing: Places = cuts.missing.astype(np.intp)
    n_known: Places = cuts.n_known.astype(np.intp)
    last: Places = np.empty(cuts.n_known.max(), np.intp)  # the last split with yes for a cell
    gaps: Vector = np.empty(parts.shape[1])
    with cython.nogil:
        stop: Size = 0
        while stop < cell.shape[0]:
            start: Size = stop
            f: Size = feature[start]
            known: Size = n_known[start]
            stop += 1
            while stop < cell.shape[0] and feature[stop] == f and cell[stop] > cell[stop - 1]:
                stop += 1
            q: Size = start
            for c in range(known):
                while q < stop and cell[q] < c:
                    q += 1
                last[c] = q - 1
            gaps[:] = 0.0
            for row in range(table.shape[0]):
                c = code[f, row]
                if c >= known:
                    for t in range(table.shape[1]):
                        gaps[t] += table[row, t]
                elif last[c] >= start:
                    q = last[c]
                    for t in range(table.shape[1]):
                        out[q, t] += table[row, t]
            for q in range(stop - 2, start - 1, -1):
                for t in range(table.shape[1]):
                    out[q, t] += out[q + 1, t]
            for q in range(start, stop):
                if missing[q]:
                    for t in range(table.shape[1]):
                        out[q, t] += gaps[t]
    return sums


def half_gains_kernel(sums: Table, n_columns: Size, n_slopes: Size):
    """`_half_gains`, by Cholesky's factor of H, which the slopes border from below."""
    size = n_columns + n_slopes
    gains = np.zeros(sums.shape[0])
    gain: Vector = gains
    root: Matrix = np.empty((size, n_columns))
    with cython.nogil:
        for q in range(sums.shape[0]):
            t: Size = 0
            largest: cython.double = 0.0
            for j in range(n_columns):
                largest = max(largest, sums[q, t])
                for i in range(j, n_columns):
                    root[i, j] = sums[q, t]
                    t += 1
            for i in range(n_columns, size):
                for j in range(n_columns):
                    root[i, j] = sums[q, t]
                    t += 1
            for j in range(n_columns):
                root[j, j] += 1e-4 * root[j, j] + 1e-9 * largest + 1e-30
                for i in range(j, size):
                    left: cython.double = root[i, j]
                    for k in range(j):
                        left -= root[i, k] * root[j, k]
                    root[i, j] = left / root[j, j] if i > j else sqrt(left)
                    if i >= n_columns:
                        gain[q] += 0.5 * root[i, j] * root[i, j]
    return gains


DIGEST = "35afbf204a0639a951f4c67f285aa89f973aedc2b2800109adf99da1b66e36c2"
