// Is a warp matrix one that the generated code computes exactly as defined?
#include "loader/internal.h"

namespace ingot::loader {

namespace {

double magnitude(double value) { return value < 0 ? -value : value; }

double larger(double a, double b) { return a > b ? a : b; }

constexpr double kMaxCoordinate = 4194304.0;                            // 2^22
constexpr double kMinRelative = 1.0 / 1099511627776.0;                  // 2^-40
constexpr double kMostSum = 170141183460469231731687303715884105728.0;  // 2^127, half of the range
constexpr double kMinAbsolute = kMinRelative / 1048576.0;  // 2^-60: flushing changes nothing

}  // namespace

ingot_status check_matrix(const uint8_t matrix[36], uint32_t width, uint32_t height) {
  double m[9];
  bool any = false;
  for (int i = 0; i < 9; ++i) {
    const auto bits = load<uint32_t>(matrix + 4 * i);
    if ((bits & 0x7F800000u) == 0x7F800000u) return INGOT_E_TRANSFORM_NOT_FINITE;
    any = any || (bits & 0x7FFFFFFFu) != 0;
    m[i] = static_cast<double>(load<float>(matrix + 4 * i));
  }
  if (!any) return INGOT_E_TRANSFORM_NONE_YET;
  const double right = width - 1.0;
  const double bottom = height - 1.0;
  // No sum or product of the warp may overflow binary32, in either plane.
  for (int row = 0; row < 9; row += 3) {
    const double most =
        magnitude(m[row]) * right + magnitude(m[row + 1]) * bottom + magnitude(m[row + 2]);
    if (!(most <= kMostSum)) return INGOT_E_TRANSFORM_OUT_OF_RANGE;
  }
  const double scale =
      larger(larger(magnitude(m[6]) * right, magnitude(m[7]) * bottom), magnitude(m[8]));
  const double smallest = larger(kMinRelative * scale, kMinAbsolute);
  // The denominator is affine: its corners bound it, so no zero can hide between them.
  int positive = 0;
  double far = 0;
  for (int corner = 0; corner < 4; ++corner) {
    const double x = (corner & 1) != 0 ? right : 0.0;
    const double y = (corner & 2) != 0 ? bottom : 0.0;
    const double d = m[6] * x + m[7] * y + m[8];
    if (!(magnitude(d) >= smallest)) return INGOT_E_TRANSFORM_DEGENERATE;
    positive += d > 0 ? 1 : 0;
    far = larger(far, magnitude((m[0] * x + m[1] * y + m[2]) / d));
    far = larger(far, magnitude((m[3] * x + m[4] * y + m[5]) / d));
  }
  if (positive != 0 && positive != 4) return INGOT_E_TRANSFORM_DEGENERATE;
  if (!(far < kMaxCoordinate)) return INGOT_E_TRANSFORM_OUT_OF_RANGE;
  return kOk;
}

}  // namespace ingot::loader
