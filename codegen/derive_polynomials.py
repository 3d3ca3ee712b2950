#!/usr/bin/env python3
"""Derives every coefficient of codegen/emit_math.cpp and prints math_coefficients.h.

    python3 codegen/derive_polynomials.py > codegen/math_coefficients.h

Needs mpmath. Each polynomial fits its function by weighted least squares on Chebyshev points, which
is within a small factor of the best possible largest error. Coefficients are rounded to the type
one after the other, lowest degree first, and what remains is fitted again, so that a later
coefficient makes up for an earlier rounding.
docs/math.md says how they are used and what errors were measured.
"""
import struct

from mpmath import mp, mpf, matrix, lu_solve
import mpmath as m

mp.dps = 50


def rounded(value, bits):
    """value to a binary float of `bits` significant bits."""
    with m.workprec(bits):
        return +mpf(value)


def fit(function, weight, low, high, degree, bits):
    """Coefficients c0..c_degree, rounded to `bits`, and the largest weighted error."""
    low, high = mpf(low), mpf(high)
    count = 6 * (degree + 2)
    points = [(low + high) / 2 - (high - low) / 2 * m.cos(m.pi * (i + mpf(1) / 2) / count)
              for i in range(count)]
    values = [function(t) for t in points]
    weights = [weight(t) for t in points]
    fixed = []
    while len(fixed) <= degree:
        powers = range(len(fixed), degree + 1)
        size = len(powers)
        rows = [[w * t ** p for p in powers] for t, w in zip(points, weights)]
        rest = [w * (v - sum(c * t ** i for i, c in enumerate(fixed)))
                for t, v, w in zip(points, values, weights)]
        normal = matrix(size, size)
        right = matrix(size, 1)
        for i in range(size):
            for j in range(size):
                normal[i, j] = m.fsum(row[i] * row[j] for row in rows)
            right[i] = m.fsum(row[i] * r for row, r in zip(rows, rest))
        fixed.append(rounded(lu_solve(normal, right)[0], bits))
    worst = mpf(0)
    for i in range(1001):
        t = low + (high - low) * i / 1000
        value = sum(c * t ** j for j, c in enumerate(fixed))
        worst = max(worst, abs(weight(t) * (value - function(t))))
    return fixed, worst


def near_zero(function, series):
    """function(t), by its first series terms where cancellation would eat the digits."""
    def evaluate(t):
        return series(t) if abs(t) < mpf("1e-8") else function(t)
    return evaluate


def print_constants(name, values, note):
    print(f"// {note}")
    print(f"inline constexpr double {name}[] = {{")
    for value in values:
        print(f"    {float(value).hex()},")
    print("};")


def polynomial(name, function, weight, low, high, degree, bits, what):
    coefficients, worst = fit(function, weight, low, high, degree, bits)
    print_constants(name, coefficients, f"{what}; error below 2^{float(m.log(worst, 2)):.1f}")


def split(name, value, widths, what):
    """value as a sum of numbers with the given significant bits."""
    parts = []
    rest = mpf(value)
    for bits in widths:
        # Truncated, so that the rest has the same sign.
        exponent = int(m.floor(m.log(abs(rest), 2)))
        scale = mpf(2) ** (bits - 1 - exponent)
        part = m.floor(rest * scale) / scale if bits < 53 and bits != 24 else rounded(rest, bits)
        parts.append(part)
        rest -= part
    print_constants(name, parts, what)


def erfc_exponent(t):
    return m.log(m.erfc(t))


def main():
    one = mpf(1)
    print("// Made by codegen/derive_polynomials.py; lowest degree first. Values of single precision")
    print("// functions are single precision numbers.")
    print("#pragma once\n")
    print("namespace ingot {\n")
    ln2 = m.log(2)
    half_pi = m.pi / 2
    exp_q = near_zero(lambda t: (m.expm1(t) - t) / t ** 2,
                      lambda t: one / 2 + t / 6 + t ** 2 / 24 + t ** 3 / 120)
    edge = ln2 / 2 * mpf("1.0001")
    split("kLn2F32", ln2, [15, 24], "ln 2, the first part exact times 9 bits")
    split("kLn2F64", ln2, [41, 53], "ln 2, the first part exact times 12 bits")
    polynomial("kExpF32", exp_q, lambda t: t ** 2 / m.exp(t), -edge, edge, 4, 24,
               "(e^t - 1 - t) / t^2 on +-ln(2)/2, against e^t")
    polynomial("kExpF64", exp_q, lambda t: t ** 2 / m.exp(t), -edge, edge, 9, 53,
               "(e^t - 1 - t) / t^2 on +-ln(2)/2, against e^t")

    for count, name in ((8, "Eighths"), (16, "Sixteenths")):
        edge = ln2 / (2 * count) * mpf("1.0001")
        polynomial(f"kExp{name}F32", exp_q, lambda t: t ** 2 / m.exp(t), -edge, edge, 1, 24,
                   f"(e^t - 1 - t) / t^2 on +-ln(2)/{2 * count}, against e^t")
        print_constants(f"kPowerOf{name}F32",
                        [rounded(mpf(2) ** (mpf(i) / count), 24) for i in range(count)],
                        f"2^(i/{count})")

    log_p = near_zero(lambda t: (m.log1p(t) - t + t ** 2 / 2) / t ** 3,
                      lambda t: one / 3 - t / 4 + t ** 2 / 5 - t ** 3 / 6)
    low, high = m.sqrt(one / 2) - 1, m.sqrt(mpf(2)) - 1
    polynomial("kLogF32", log_p,
               near_zero(lambda t: t ** 3 / m.log1p(t), lambda t: t ** 2), low, high, 7, 24,
               "(ln(1+t) - t + t^2/2) / t^3 on sqrt(1/2)-1..sqrt(2)-1, against ln(1+t)")
    largest = (high / (2 + high)) ** 2
    polynomial("kLogF64",
               near_zero(lambda z: (2 * m.atanh(m.sqrt(z)) / m.sqrt(z) - 2) / z,
                         lambda z: 2 * one / 3 + 2 * z / 5 + 2 * z ** 2 / 7),
               lambda z: z, 0, largest * mpf("1.001"), 6, 53,
               "(2 artanh(s)/s - 2) / z, z = s^2, s up to (sqrt(2)-1)/(sqrt(2)+1)")

    tanh_p = near_zero(lambda z: (m.tanh(m.sqrt(z)) / m.sqrt(z) - 1) / z,
                       lambda z: -one / 3 + 2 * z / 15 - 17 * z ** 2 / 315)
    polynomial("kTanhF32", tanh_p, lambda z: z, 0, mpf("0.625") ** 2, 4, 24,
               "(tanh(t)/t - 1) / z, z = t^2, up to 0.625")
    polynomial("kTanhF64", tanh_p, lambda z: z, 0, mpf("0.625") ** 2, 11, 53,
               "(tanh(t)/t - 1) / z, z = t^2, up to 0.625")

    # The published approximation of ONNX Runtime's MLAS (logistic function, 18 as its largest
    # argument): which scores of a map tie, and so which peaks survive, depends on it.
    published = "sigmoid(t) - 1/2 in z = t^2, from ONNX Runtime's MLAS: "
    print_constants("kSigmoidTopF32", [rounded(c, 24) for c in (
        "2.48287947061529e-01", "8.51377133304701e-03", "6.08574864600143e-05",
        "1.15627324459942e-07", "4.37031012579801e-11")], published + "numerator over t")
    print_constants("kSigmoidBottomF32", [rounded(c, 24) for c in (
        "9.93151921023180e-01", "1.16817656904453e-01", "1.70198817374094e-03",
        "6.29106785017040e-06", "5.76102136993427e-09", "6.10247389755681e-13")],
        published + "denominator")

    sin_p = near_zero(lambda z: (m.sin(m.sqrt(z)) / m.sqrt(z) - 1) / z,
                      lambda z: -one / 6 + z / 120 - z ** 2 / 5040)
    cos_p = near_zero(lambda z: (m.cos(m.sqrt(z)) - 1 + z / 2) / z ** 2,
                      lambda z: one / 24 - z / 720 + z ** 2 / 40320)
    quarter = (m.pi / 4) ** 2 * mpf("1.001")
    for suffix, bits, sin_degree, cos_degree in (("F32", 24, 3, 2), ("F64", 53, 5, 5)):
        polynomial("kSin" + suffix, sin_p, lambda z: z, 0, quarter, sin_degree, bits,
                   "(sin(t)/t - 1) / z, z = t^2, up to pi/4")
        polynomial("kCos" + suffix, cos_p, lambda z: z ** 2, 0, quarter, cos_degree, bits,
                   "(cos(t) - 1 + z/2) / z^2, z = t^2, up to pi/4")
    split("kHalfPiF32", half_pi, [30, 53], "pi/2, the first part exact times 23 bits")
    split("kHalfPiF64", half_pi, [33, 33, 53], "pi/2, the first parts exact times 20 bits")

    erf_p = near_zero(lambda z: m.erf(m.sqrt(z)) / m.sqrt(z) - 1,
                      lambda z: 2 / m.sqrt(m.pi) * (1 - z / 3 + z ** 2 / 10) - 1)
    polynomial("kErfSmallF32", erf_p, lambda z: 1, 0, 1, 6, 24,
               "erf(t)/t - 1 in z = t^2, up to 1")
    polynomial("kErfSmallF64", erf_p, lambda z: 1, 0, 1, 15, 53,
               "erf(t)/t - 1 in z = t^2, up to 1")
    step = mpf("0.2578125")
    erf_near_zero = near_zero(lambda t: m.erf(t) / t - 1,
                              lambda t: 2 / m.sqrt(m.pi) * (1 - t * t / 3) - 1)
    rows = [[mpf(0)] + fit(erf_near_zero, lambda t: 1, -step / 2, step / 2, 4, 24)[0]]
    for i in range(1, 16):
        rows.append(fit(lambda t: m.erf(i * step + t), lambda t: 1 / m.erf(i * step + t),
                        -step / 2, step / 2, 5, 24)[0])
    print_constants("kErfStepF32", [step], "between the centers of kErfStepsF32")
    print("// erf(t) in u = t - i * kErfStepF32: coefficient by coefficient, those of i = 0 to 15;")
    print("// for i = 0 of erf(t) - t")
    print("inline constexpr double kErfStepsF32[][16] = {")
    for coefficient in zip(*rows):
        print("    {" + ", ".join(float(value).hex() for value in coefficient) + "},")
    print("};")
    polynomial("kErfLargeF32", lambda u: erfc_exponent(u + 2), lambda u: m.erfc(u + 2), -1, 2, 8,
               24, "ln(erfc(t)) in u = t - 2, t in 1..4, against erf")
    polynomial("kErfMiddleF64", lambda u: erfc_exponent(u + mpf("1.75")),
               lambda u: m.erfc(u + mpf("1.75")), mpf("-0.75"), mpf("0.75"), 15, 53,
               "ln(erfc(t)) in u = t - 1.75, t in 1..2.5, against erf")
    polynomial("kErfLargeF64", lambda u: erfc_exponent(u + 4), lambda u: m.erfc(u + 4),
               mpf("-1.5"), 2, 11, 53,
               "ln(erfc(t)) in u = t - 4, t in 2.5..6, against erf")

    print("\n// 2/pi = 0.10100010..., from the bit of weight 1/2 on; 64 zero bits stand before it.")
    print("inline constexpr unsigned long long kTwoOverPi[] = {")
    mp.prec = 1400
    bits = int(m.floor(2 / m.pi * mpf(2) ** (64 * 19)))
    words = [0] + [(bits >> (64 * (18 - i))) & 0xFFFFFFFFFFFFFFFF for i in range(19)]
    for word in words:
        print(f"    0x{word:016X},")
    print("};")
    print("\n}  // namespace ingot")


main()
