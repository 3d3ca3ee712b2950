#include "loader/ed25519.h"

#include "loader/bytes.h"
#include "loader/sha512.h"

namespace ingot::loader {

namespace {

__extension__ typedef unsigned __int128 U128;

// ---- the field of integers modulo p = 2^255 - 19, five limbs of 51 bits -------------------------
//
// Products come out with limbs just above 2^51. A sum of two such, or a difference (which adds 4p
// to stay positive), has limbs below 2^54, which multiply() takes without overflow: 5 * 19 * 2^54 *
// 2^54 < 2^115.

constexpr uint64_t kMask51 = (uint64_t{1} << 51) - 1;

struct Field {
  uint64_t limb[5];
};

constexpr Field kZero = {{0, 0, 0, 0, 0}};
constexpr Field kOne = {{1, 0, 0, 0, 0}};
// d = -121665/121666, twice d, and a square root of -1.
constexpr Field kD = {{0x34dca135978a3ull, 0x1a8283b156ebdull, 0x5e7a26001c029ull,
                       0x739c663a03cbbull, 0x52036cee2b6ffull}};
constexpr Field kTwiceD = {{0x69b9426b2f159ull, 0x35050762add7aull, 0x3cf44c0038052ull,
                            0x6738cc7407977ull, 0x2406d9dc56dffull}};
constexpr Field kRootOfMinusOne = {{0x61b274a0ea0b0ull, 0xd5a5fc8f189dull, 0x7ef5e9cbd0c60ull,
                                    0x78595a6804c9eull, 0x2b8324804fc1dull}};

Field add(const Field& a, const Field& b) {
  Field sum;
  for (int i = 0; i < 5; ++i) sum.limb[i] = a.limb[i] + b.limb[i];
  return sum;
}

// b must be a product or a sum of two small constants: limbs below those of 4p.
Field subtract(const Field& a, const Field& b) {
  constexpr uint64_t four_p = (uint64_t{1} << 53) - 4;
  Field difference;
  difference.limb[0] = a.limb[0] + (four_p - 72) - b.limb[0];
  for (int i = 1; i < 5; ++i) difference.limb[i] = a.limb[i] + four_p - b.limb[i];
  return difference;
}

// Carries a wide sum down to limbs just above 51 bits.
Field carry(U128 sum[5]) {
  Field result;
  for (int i = 0; i < 4; ++i) {
    sum[i + 1] += sum[i] >> 51;
    result.limb[i] = static_cast<uint64_t>(sum[i]) & kMask51;
  }
  result.limb[4] = static_cast<uint64_t>(sum[4]) & kMask51;
  const U128 wrapped = static_cast<U128>(result.limb[0]) + (sum[4] >> 51) * 19;
  result.limb[0] = static_cast<uint64_t>(wrapped) & kMask51;
  result.limb[1] += static_cast<uint64_t>(wrapped >> 51);
  return result;
}

__attribute__((noinline)) Field multiply(const Field& x, const Field& y) {
  const uint64_t* a = x.limb;
  const uint64_t* b = y.limb;
  const uint64_t b1 = 19 * b[1], b2 = 19 * b[2], b3 = 19 * b[3], b4 = 19 * b[4];
  const auto wide = [](uint64_t m, uint64_t n) { return static_cast<U128>(m) * n; };
  U128 sum[5];
  sum[0] = wide(a[0], b[0]) + wide(a[1], b4) + wide(a[2], b3) + wide(a[3], b2) + wide(a[4], b1);
  sum[1] = wide(a[0], b[1]) + wide(a[1], b[0]) + wide(a[2], b4) + wide(a[3], b3) + wide(a[4], b2);
  sum[2] = wide(a[0], b[2]) + wide(a[1], b[1]) + wide(a[2], b[0]) + wide(a[3], b4) + wide(a[4], b3);
  sum[3] =
      wide(a[0], b[3]) + wide(a[1], b[2]) + wide(a[2], b[1]) + wide(a[3], b[0]) + wide(a[4], b4);
  sum[4] =
      wide(a[0], b[4]) + wide(a[1], b[3]) + wide(a[2], b[2]) + wide(a[3], b[1]) + wide(a[4], b[0]);
  return carry(sum);
}

Field square(const Field& a) { return multiply(a, a); }

Field square_times(Field a, int count) {
  while (count-- > 0) a = square(a);
  return a;
}

// a^(2^252 - 3): both the inverse and the root are built from it.
Field power_2_252_minus_3(const Field& a) {
  const Field a2 = square(a);
  const Field a9 = multiply(square_times(a2, 2), a);
  const Field a11 = multiply(a9, a2);
  const Field e5 = multiply(square(a11), a9);  // exponent 2^5 - 1
  const Field e10 = multiply(square_times(e5, 5), e5);
  const Field e20 = multiply(square_times(e10, 10), e10);
  const Field e40 = multiply(square_times(e20, 20), e20);
  const Field e50 = multiply(square_times(e40, 10), e10);
  const Field e100 = multiply(square_times(e50, 50), e50);
  const Field e200 = multiply(square_times(e100, 100), e100);
  const Field e250 = multiply(square_times(e200, 50), e50);
  return multiply(square_times(e250, 2), a);
}

// a^(p - 2) = a^(2^255 - 21) = (a^(2^252 - 3))^8 * a^3.
Field invert(const Field& a) {
  const Field power = power_2_252_minus_3(a);
  return multiply(square_times(power, 3), multiply(square(a), a));
}

void encode_field(const Field& a, uint8_t bytes[32]) {
  U128 wide[5];
  for (int i = 0; i < 5; ++i) wide[i] = a.limb[i];
  Field r = carry(wide);
  // r < 2p. Adding 19 shows in bit 255 whether r >= p.
  uint64_t over = 19;
  for (int i = 0; i < 5; ++i) over = (r.limb[i] + over) >> 51;
  r.limb[0] += 19 * over;
  for (int i = 0; i < 4; ++i) {
    r.limb[i + 1] += r.limb[i] >> 51;
    r.limb[i] &= kMask51;
  }
  r.limb[4] &= kMask51;
  const uint64_t words[4] = {r.limb[0] | r.limb[1] << 51, r.limb[1] >> 13 | r.limb[2] << 38,
                             r.limb[2] >> 26 | r.limb[3] << 25, r.limb[3] >> 39 | r.limb[4] << 12};
  std::memcpy(bytes, words, 32);
}

// The low 255 bits; the top bit is the caller's business.
Field decode_field(const uint8_t bytes[32]) {
  uint64_t w[4];
  std::memcpy(w, bytes, 32);
  return {{w[0] & kMask51, (w[0] >> 51 | w[1] << 13) & kMask51, (w[1] >> 38 | w[2] << 26) & kMask51,
           (w[2] >> 25 | w[3] << 39) & kMask51, (w[3] >> 12) & kMask51}};
}

bool equal(const Field& a, const Field& b) {
  uint8_t x[32];
  uint8_t y[32];
  encode_field(a, x);
  encode_field(b, y);
  return std::memcmp(x, y, 32) == 0;
}

bool is_zero(const Field& a) { return equal(a, kZero); }

bool is_odd(const Field& a) {
  uint8_t bytes[32];
  encode_field(a, bytes);
  return (bytes[0] & 1) != 0;
}

// ---- the curve -x^2 + y^2 = 1 + d x^2 y^2 -------------------------------------------------------

// x = X/Z, y = Y/Z, xy = T/Z.
struct Point {
  Field x, y, z, t;
};

// A point prepared for addition.
struct Addend {
  Field y_minus_x, y_plus_x, two_z, two_d_t;
};

constexpr Point kIdentity = {kZero, kOne, kOne, kZero};
constexpr Point kBase = {{{0x62d608f25d51aull, 0x412a4b4f6592aull, 0x75b7171a4b31dull,
                           0x1ff60527118feull, 0x216936d3cd6e5ull}},
                         {{0x6666666666658ull, 0x4ccccccccccccull, 0x1999999999999ull,
                           0x3333333333333ull, 0x6666666666666ull}},
                         kOne,
                         {{0x68ab3a5b7dda3ull, 0xeea2a5eadbbull, 0x2af8df483c27eull,
                           0x332b375274732ull, 0x67875f0fd78b7ull}}};

Point finish(const Field& e, const Field& f, const Field& g, const Field& h) {
  return {multiply(e, f), multiply(g, h), multiply(f, g), multiply(e, h)};
}

// RFC 8032, 5.1.4, both formulas; complete on this curve.
Point twice(const Point& p) {
  const Field a = square(p.x);
  const Field b = square(p.y);
  const Field z2 = square(p.z);
  const Field h = add(a, b);
  const Field e = subtract(h, square(add(p.x, p.y)));
  const Field g = subtract(a, b);
  return finish(e, add(add(z2, z2), g), g, h);
}

Point plus(const Point& p, const Addend& q, bool negative) {
  // -q exchanges the first two members and the sign of the last.
  const Field a = multiply(subtract(p.y, p.x), negative ? q.y_plus_x : q.y_minus_x);
  const Field b = multiply(add(p.y, p.x), negative ? q.y_minus_x : q.y_plus_x);
  const Field c = multiply(p.t, q.two_d_t);
  const Field d = multiply(p.z, q.two_z);
  const Field minus = subtract(d, c);
  const Field sum = add(d, c);
  return finish(subtract(b, a), negative ? sum : minus, negative ? minus : sum, add(b, a));
}

Addend prepare(const Point& p) {
  return {subtract(p.y, p.x), add(p.y, p.x), add(p.z, p.z), multiply(p.t, kTwiceD)};
}

bool has_small_order(const Point& p) {
  const Point eightfold = twice(twice(twice(p)));
  return is_zero(eightfold.x) && equal(eightfold.y, eightfold.z);
}

void encode_point(const Point& p, uint8_t bytes[32]) {
  const Field inverse = invert(p.z);
  encode_field(multiply(p.y, inverse), bytes);
  if (is_odd(multiply(p.x, inverse))) bytes[31] |= 0x80;
}

// Canonical encodings of curve points only.
bool decode_point(const uint8_t bytes[32], Point* p) {
  uint8_t canonical[32];
  p->y = decode_field(bytes);
  encode_field(p->y, canonical);
  canonical[31] |= bytes[31] & 0x80;
  if (std::memcmp(bytes, canonical, 32) != 0) return false;
  // x^2 = u/v with u = y^2 - 1, v = d y^2 + 1; candidate x = u v^3 (u v^7)^((p - 5)/8).
  const Field y2 = square(p->y);
  const Field u = subtract(y2, kOne);
  const Field v = add(multiply(y2, kD), kOne);
  const Field v3 = multiply(square(v), v);
  const Field uv7 = multiply(multiply(square(v3), v), u);
  p->x = multiply(multiply(u, v3), power_2_252_minus_3(uv7));
  const Field check = multiply(square(p->x), v);
  if (!equal(check, u)) {
    if (!is_zero(add(check, multiply(u, kOne)))) return false;  // not a square
    p->x = multiply(p->x, kRootOfMinusOne);
  }
  const bool sign = (bytes[31] & 0x80) != 0;
  if (sign && is_zero(p->x)) return false;
  if (is_odd(p->x) != sign) p->x = multiply(subtract(kZero, p->x), kOne);
  p->z = kOne;
  p->t = multiply(p->x, p->y);
  return true;
}

// ---- scalars modulo L = 2^252 + 27742317777372353535851937790883648493 --------------------------

struct Scalar {
  uint64_t word[4];
};

constexpr Scalar kOrder = {
    {0x5812631a5cf5d3edull, 0x14def9dea2f79cd6ull, 0, 0x1000000000000000ull}};

bool below_order(const Scalar& s) {
  for (int i = 3; i >= 0; --i) {
    if (s.word[i] != kOrder.word[i]) return s.word[i] < kOrder.word[i];
  }
  return false;
}

// Long division by one bit at a time: 512 steps, a few microseconds.
Scalar reduce(const uint8_t digest[64]) {
  Scalar r = {};
  for (int bit = 511; bit >= 0; --bit) {
    for (int i = 3; i > 0; --i) r.word[i] = r.word[i] << 1 | r.word[i - 1] >> 63;
    r.word[0] = r.word[0] << 1 | ((digest[bit / 8] >> (bit % 8)) & 1);
    if (below_order(r)) continue;
    U128 borrow = 0;
    for (int i = 0; i < 4; ++i) {
      const U128 difference = static_cast<U128>(r.word[i]) - kOrder.word[i] - borrow;
      r.word[i] = static_cast<uint64_t>(difference);
      borrow = (difference >> 64) & 1;
    }
  }
  return r;
}

// Signed digits, all odd or zero and below 2^5 in size, at most one in five consecutive places.
void recode(const Scalar& scalar, int8_t digit[256]) {
  std::memset(digit, 0, 256);
  Scalar s = scalar;
  for (int place = 0; place < 256; ++place) {
    if ((s.word[0] & 1) != 0) {
      int value = static_cast<int>(s.word[0] & 31);
      if (value >= 16) value -= 32;
      digit[place] = static_cast<int8_t>(value);
      // s -= value: clear the low bits, or carry upward.
      uint64_t up = value < 0 ? 32 : 0;
      s.word[0] &= ~uint64_t{31};
      for (int i = 0; i < 4; ++i) {
        s.word[i] += up;
        up = s.word[i] < up ? 1 : 0;
      }
    }
    for (int i = 0; i < 3; ++i) s.word[i] = s.word[i] >> 1 | s.word[i + 1] << 63;
    s.word[3] >>= 1;
  }
}

constexpr int kTableSize = 8;

// p, 3p, 5p, ..., 15p.
void odd_multiples(const Point& p, Addend table[kTableSize]) {
  const Addend two_p = prepare(twice(p));
  Point multiple = p;
  for (int i = 0; i < kTableSize; ++i) {
    table[i] = prepare(multiple);
    multiple = plus(multiple, two_p, false);
  }
}

void add_digit(Point* sum, const Addend table[kTableSize], int digit) {
  if (digit == 0) return;
  *sum = plus(*sum, table[(digit < 0 ? -digit : digit) / 2], digit < 0);
}

// [s]B - [k]A.
Point double_multiple(const Scalar& s, const Scalar& k, const Point& a) {
  Addend of_base[kTableSize];
  Addend of_a[kTableSize];
  int8_t digits_s[256];
  int8_t digits_k[256];
  odd_multiples(kBase, of_base);
  odd_multiples(a, of_a);
  recode(s, digits_s);
  recode(k, digits_k);
  Point sum = kIdentity;
  for (int place = 255; place >= 0; --place) {
    sum = twice(sum);
    add_digit(&sum, of_base, digits_s[place]);
    add_digit(&sum, of_a, -digits_k[place]);
  }
  return sum;
}

}  // namespace

bool ed25519_key_valid(const uint8_t public_key[32]) {
  Point a;
  return decode_point(public_key, &a) && !has_small_order(a);
}

bool ed25519_verify(const uint8_t public_key[32], const void* message, size_t nbytes,
                    const uint8_t signature[64]) {
  Scalar s;
  std::memcpy(&s, signature + 32, 32);
  if (!below_order(s)) return false;
  Point a;
  if (!decode_point(public_key, &a) || has_small_order(a)) return false;
  const Piece pieces[3] = {{signature, 32}, {public_key, 32}, {message, nbytes}};
  uint8_t digest[64];
  sha512(pieces, 3, digest);
  const Point r = double_multiple(s, reduce(digest), a);
  // Equal bytes make R a canonical encoding of a curve point, so only its order is left to check.
  uint8_t encoded[32];
  encode_point(r, encoded);
  return std::memcmp(encoded, signature, 32) == 0 && !has_small_order(r);
}

}  // namespace ingot::loader
