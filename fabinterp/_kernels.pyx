# Written from the notebooks' cells `#| cython`; see nbs/rows/06_kernels.ipynb.
# cython: language_level=3, infer_types=True, cdivision=True
# cython: boundscheck=False, wraparound=False, initializedcheck=False
import cython
import numpy as np
from cython.cimports.libc.math import exp, fabs, log1p, sqrt

TOL = cython.declare(cython.double, 1e-9)
_SETTLED = cython.declare(cython.double, 1e-5)

Size = cython.typedef(cython.Py_ssize_t)
Vector = cython.typedef(cython.double[::1])
Matrix = cython.typedef(cython.double[:, ::1])
Places = cython.typedef(cython.Py_ssize_t[::1])
Flags = cython.typedef(cython.uchar[::1])
# of arguments, which may be views and may not be changed
Column = cython.typedef(cython.const[cython.double][:])
Table = cython.typedef(cython.const[cython.double][:, :])
Tables = cython.typedef(cython.const[cython.double][:, :, :])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sweep_kernel(
    table: Matrix,
    k: Size,
    sign: cython.double,
    work: Matrix,
) -> cython.void:
    """`_sweep`."""
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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _first_largest_kernel(gain: Vector, inside: Flags, chosen: cython.uchar) -> Size:
    """`_first_largest` of the columns that are chosen, or of those that are not; -1: there is none."""
    found: Size = -1
    for k in range(inside.shape[0]):
        if inside[k] == chosen and (found < 0 or gain[k] > gain[found]):
            found = k
    if found >= 0:
        least = gain[found] - TOL * fabs(gain[found])
        for k in range(found):
            if inside[k] == chosen and gain[k] >= least:
                return k
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _exchange_kernel(
    table: Matrix,
    inside: Flags,
    floor: Vector,
    price: cython.double,
    n_free: Size,
    work: Matrix,
) -> Size:
    """`_forward_backward`; inside: 0 out, 1 in, 2 always in. Returns how many more may enter."""
    p = floor.shape[0]
    gain = work[2]
    least = TOL * price
    for _ in range(20 * (p + 1)):
        for k in range(p):
            gain[k] = 0.0
            if inside[k] or table[k, k] > floor[k]:
                for j in range(p, table.shape[0]):
                    gain[k] += table[k, j] * table[k, j]
                gain[k] /= 2 * table[k, k]
            gain[k] += price if inside[k] else -price
        k = _first_largest_kernel(gain, inside, 1)
        if k >= 0 and (gain[k] > least or n_free < 0):
            _sweep_kernel(table, k, -1.0, work)
            inside[k] = 0
            n_free += 1
            continue
        k = _first_largest_kernel(gain, inside, 0)
        if k < 0 or n_free < 1 or gain[k] <= least:
            break
        if table[k, k] > floor[k]:
            _sweep_kernel(table, k, 1.0, work)
            inside[k] = 1
            n_free -= 1
    return n_free


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _begin_kernel(
    table: Matrix,
    inside: Flags,
    floor: Vector,
    wanted: Flags,
    work: Matrix,
) -> Size:
    """`_initial_state` from columns wanted (1) and always in (2); how many of the former are in."""
    n_in: Size = 0
    for k in range(floor.shape[0]):
        floor[k] = TOL * table[k, k]
        inside[k] = 0
    for kind in range(2, 0, -1):
        for k in range(floor.shape[0]):
            if wanted[k] == kind:
                if table[k, k] > floor[k]:
                    _sweep_kernel(table, k, 1.0, work)
                    inside[k] = kind
                    n_in += kind == 1
                elif kind == 2:
                    inside[k] = 3  # never
    return n_in


def climb_kernel(gram, cross, price, start, always, max_size):
    """`_climb` without options."""
    p, m = cross.shape
    table = np.zeros((p + m, p + m))
    table[:p, :p] = gram
    table[:p, p:] = cross
    table[p:, :p] = cross.T
    wanted = np.zeros(p, np.uint8)
    wanted[np.asarray(start, int)] = 1
    wanted[np.asarray(always, int)] = 2
    inside = np.empty(p, np.uint8)
    floor = np.empty(p)
    work = np.empty((3, p + m))
    n_free = int(min(max_size, p + 1)) - _begin_kernel(table, inside, floor, wanted, work)
    _exchange_kernel(table, inside, floor, price, n_free, work)
    chosen = inside == 1
    coef = np.where((chosen | (inside == 2))[:, None], table[:p, p:], 0.0)
    gain = -0.5 * table[p:, p:].trace() - price * int(chosen.sum())
    return coef, np.flatnonzero(chosen), gain


def foba_many_kernel(grams: Tables, crosses: Table, prices: Column):
    """`foba_many`."""
    p = crosses.shape[1]
    coefs = np.zeros((crosses.shape[0], p))
    gains = np.empty(crosses.shape[0])
    coef: Matrix = coefs
    gain: Vector = gains
    table: Matrix = np.empty((p + 1, p + 1))
    work: Matrix = np.empty((3, p + 1))
    floor: Vector = np.empty(p)
    inside: Flags = np.empty(p, np.uint8)
    wanted: Flags = np.zeros(p, np.uint8)
    wanted[0] = 2
    with cython.nogil:
        for b in range(crosses.shape[0]):
            for i in range(p):
                for j in range(p):
                    table[i, j] = grams[b, i, j]
                table[i, p] = table[p, i] = crosses[b, i]
            table[p, p] = 0.0
            _begin_kernel(table, inside, floor, wanted, work)
            _exchange_kernel(table, inside, floor, prices[b], p, work)
            gain[b] = -0.5 * table[p, p]
            for i in range(p):
                if inside[i] == 1 or inside[i] == 2:
                    coef[b, i] = table[i, p]
                if inside[i] == 1:
                    gain[b] -= prices[b]
    return coefs, gains


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _likelihood_kernel(
    X: Table,
    y: Column,
    w: Column,
    columns: Places,
    theta: Vector,
    ridge: Vector,
    size: Size,
    again: cython.bint,
    slope: Vector,
    curvature: Matrix,
    work: Matrix,
) -> cython.double:
    """`_evaluate_parameters` of the first `size` columns; `again`: their slope and curvature, too."""
    x: Matrix = work[4:]
    bend = work[3]
    value: cython.double = 0.0
    if again:
        for i in range(size):
            slope[i] = 0.0
            for j in range(i + 1):
                curvature[i, j] = 0.0
    n = X.shape[0]
    for row in range(n):
        k = row % 4
        score: cython.double = 0.0
        for i in range(size):
            x[k, i] = X[row, columns[i]]
            score += x[k, i] * theta[i]
        small = exp(-fabs(score))
        value += w[row] * ((y[row] - (score > 0)) * score - log1p(small))
        if not again:
            continue
        prob = (1.0 if score > 0 else small) / (1.0 + small)
        bend[k] = w[row] * prob * (1.0 - prob)
        pull = w[row] * (y[row] - prob)
        for i in range(size):
            slope[i] += pull * x[k, i]
        if k < 3 and row < n - 1:
            continue
        for j in range(k + 1, 4):
            bend[j] = 0.0
        for i in range(size):
            a = bend[0] * x[0, i]
            b = bend[1] * x[1, i]
            c = bend[2] * x[2, i]
            d = bend[3] * x[3, i]
            for j in range(i + 1):
                curvature[i, j] += a * x[0, j] + b * x[1, j] + (c * x[2, j] + d * x[3, j])
    for i in range(size):
        bent = ridge[columns[i]] * theta[i]
        value -= 0.5 * bent * theta[i]
        if again:
            slope[i] -= bent
            curvature[i, i] += ridge[columns[i]]
    return value


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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _newton_kernel(
    X: Table,
    y: Column,
    w: Column,
    columns: Places,
    theta: Vector,
    ridge: Vector,
    size: Size,
    slope: Vector,
    curvature: Matrix,
    work: Matrix,
) -> cython.double:
    """`newton_search` of the first `size` columns from theta, in place; the value there."""
    step = work[0]
    trial = work[1]
    value = _likelihood_kernel(X, y, w, columns, theta, ridge, size, True, slope, curvature, work)
    for _ in range(100):
        rise = _solve_kernel(curvature, slope, size, step)
        if not rise >= 0.0:
            break
        again: cython.bint = rise >= _SETTLED
        share = 2.0
        found = value
        while share == 2.0 or (found < value + 0.1 * share * rise and share > 1e-6):
            share /= 2
            for j in range(size):
                trial[j] = theta[j] + share * step[j]
            found = _likelihood_kernel(
                X, y, w, columns, trial, ridge, size, again, slope, curvature, work
            )
        if not found > value:
            break
        value = found
        for j in range(size):
            theta[j] = trial[j]
        if not again:
            break
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fit_support_kernel(
    X: Table,
    y: Column,
    w: Column,
    price: cython.double,
    theta: Vector,
    ridge: Vector,
    columns: Places,
    slope: Vector,
    curvature: Matrix,
    work: Matrix,
) -> cython.double:
    """`_fit_support`, theta (p,) in place."""
    fitted = work[2]
    size: Size = 0
    for j in range(theta.shape[0]):
        if j == 0 or theta[j] != 0.0:
            columns[size] = j
            fitted[size] = theta[j]
            size += 1
    value = _newton_kernel(X, y, w, columns, fitted, ridge, size, slope, curvature, work)
    for i in range(size):
        theta[columns[i]] = fitted[i]
    return value - price * (size - 1)


def logistic_kernel(
    X: Table,
    y: Column,
    w: Column,
    price: cython.double,
    start: Column,
):
    """`_logistic` without options."""
    p = X.shape[1]
    own = np.asarray(X)
    ridge: Vector = np.maximum(1e-6 * (np.asarray(w) @ (own * own)), 1e-100)
    no_ridge: Vector = np.zeros(p)
    best = np.array(start)
    theta: Vector = best
    trial: Vector = np.empty(p)
    slope: Vector = np.empty(p)
    floor: Vector = np.empty(p)
    pull: Vector = np.empty(p)
    curvature: Matrix = np.empty((p, p))
    factor: Matrix = np.empty((p, p))
    table: Matrix = np.empty((p + 1, p + 1))
    work: Matrix = np.zeros((8, max(p + 1, 4)))
    every: Places = np.arange(p)
    columns: Places = np.empty(p, int)
    inside: Flags = np.empty(p, np.uint8)
    wanted: Flags = np.empty(p, np.uint8)
    with cython.nogil:
        value = _fit_support_kernel(X, y, w, price, theta, ridge, columns, pull, factor, work)
        better = True
        while better:
            better = False
            _likelihood_kernel(X, y, w, every, theta, ridge, p, True, slope, curvature, work)
            for proposal in range(3):
                n_free: Size = 1 if proposal == 1 else p
                table[p, p] = 0.0
                for i in range(p):
                    wanted[i] = 2 if i == 0 else theta[i] != 0.0
                    n_free += wanted[i] == 1 and proposal == 1
                    table[i, p] = slope[i]
                    for j in range(p):
                        table[i, j] = curvature[max(i, j), min(i, j)]
                        table[i, p] += table[i, j] * theta[j]
                    table[p, i] = table[i, p]
                n_free -= _begin_kernel(table, inside, floor, wanted, work)
                share = 1.0 if proposal == 0 else (0.25 if proposal == 1 else 2.0)
                _exchange_kernel(table, inside, floor, share * price, n_free, work)
                differs: cython.bint = False
                for i in range(p):
                    trial[i] = table[i, p] if inside[i] == 1 or inside[i] == 2 else 0.0
                    differs = differs or (trial[i] != 0.0) != (theta[i] != 0.0)
                if not differs:
                    continue
                worth = _fit_support_kernel(
                    X, y, w, price, trial, ridge, columns, pull, factor, work
                )
                if worth > value + 1e-6:
                    value = worth
                    theta[:] = trial
                    better = True
                    break
        size: Size = 0
        for i in range(1, p):
            size += theta[i] != 0.0
        value = _likelihood_kernel(
            X, y, w, every, theta, no_ridge, p, False, slope, curvature, work
        )
        value -= price * size
        size = 0
        for i in range(p):
            trial[i] = start[i]
            size += i > 0 and start[i] != 0.0
        worth = _likelihood_kernel(
            X, y, w, every, trial, no_ridge, p, False, slope, curvature, work
        )
        worth -= price * size
    return (best, value) if value >= worth else (np.array(start), worth)


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


DIGEST = "fbd1acd8dbb9de41df6d8ca09920fd44caf9f26e6e1b64c74f39803de11fb625"
