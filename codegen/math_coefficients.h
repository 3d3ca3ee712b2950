// Made by codegen/derive_polynomials.py; lowest degree first. Values of single precision
// functions are single precision numbers.
#pragma once

namespace ingot {

// ln 2, the first part exact times 9 bits
inline constexpr double kLn2F32[] = {
    0x1.62e4000000000p-1,
    0x1.7f7d1c0000000p-20,
};
// ln 2, the first part exact times 12 bits
inline constexpr double kLn2F64[] = {
    0x1.62e42fefa3000p-1,
    0x1.3de6af278ece6p-42,
};
// (e^t - 1 - t) / t^2 on +-ln(2)/2, against e^t; error below 2^-28.0
inline constexpr double kExpF32[] = {
    0x1.fffff80000000p-2, 0x1.55548e0000000p-3,  0x1.555b960000000p-5,
    0x1.123bd00000000p-7, 0x1.6853520000000p-10,
};
// (e^t - 1 - t) / t^2 on +-ln(2)/2, against e^t; error below 2^-57.8
inline constexpr double kExpF64[] = {
    0x1.000000000000bp-1,  0x1.555555555550fp-3,  0x1.55555555502a0p-5,  0x1.1111111122b4ap-7,
    0x1.6c16c1852c01cp-10, 0x1.a01a014498ae6p-13, 0x1.a01997c656a0fp-16, 0x1.71deec62e8918p-19,
    0x1.28af42a60c9fap-22, 0x1.add773f1864b3p-26,
};
// (e^t - 1 - t) / t^2 on +-ln(2)/16, against e^t; error below 2^-25.2
inline constexpr double kExpEighthsF32[] = {
    0x1.00088a0000000p-1,
    0x1.5559100000000p-3,
};
// 2^(i/8)
inline constexpr double kPowerOfEighthsF32[] = {
    0x1.0000000000000p+0, 0x1.172b840000000p+0, 0x1.306fe00000000p+0, 0x1.4bfdae0000000p+0,
    0x1.6a09e60000000p+0, 0x1.8ace540000000p+0, 0x1.ae89fa0000000p+0, 0x1.d5818e0000000p+0,
};
// (e^t - 1 - t) / t^2 on +-ln(2)/32, against e^t; error below 2^-29.2
inline constexpr double kExpSixteenthsF32[] = {
    0x1.0002220000000p-1,
    0x1.5556400000000p-3,
};
// 2^(i/16)
inline constexpr double kPowerOfSixteenthsF32[] = {
    0x1.0000000000000p+0, 0x1.0b55860000000p+0, 0x1.172b840000000p+0, 0x1.2387a60000000p+0,
    0x1.306fe00000000p+0, 0x1.3dea640000000p+0, 0x1.4bfdae0000000p+0, 0x1.5ab07e0000000p+0,
    0x1.6a09e60000000p+0, 0x1.7a11480000000p+0, 0x1.8ace540000000p+0, 0x1.9c49180000000p+0,
    0x1.ae89fa0000000p+0, 0x1.c199be0000000p+0, 0x1.d5818e0000000p+0, 0x1.ea4afa0000000p+0,
};
// (ln(1+t) - t + t^2/2) / t^3 on sqrt(1/2)-1..sqrt(2)-1, against ln(1+t); error below 2^-27.1
inline constexpr double kLogF32[] = {
    0x1.5555640000000p-2, -0x1.00023c0000000p-2, 0x1.9998600000000p-3, -0x1.5467900000000p-3,
    0x1.2364380000000p-3, -0x1.0e68260000000p-3, 0x1.025bea0000000p-3, -0x1.2d36360000000p-4,
};
// (2 artanh(s)/s - 2) / z, z = s^2, s up to (sqrt(2)-1)/(sqrt(2)+1); error below 2^-58.4
inline constexpr double kLogF64[] = {
    0x1.5555555555595p-1, 0x1.999999997f26cp-2, 0x1.249249427c47dp-2, 0x1.c71c51a26870dp-3,
    0x1.746652b1500b2p-3, 0x1.399fd376aebe3p-3, 0x1.2f17efa94bb3cp-3,
};
// (tanh(t)/t - 1) / z, z = t^2, up to 0.625; error below 2^-27.7
inline constexpr double kTanhF32[] = {
    -0x1.5555320000000p-2, 0x1.1107080000000p-3,  -0x1.b8395e0000000p-5,
    0x1.5217440000000p-6,  -0x1.75a9900000000p-8,
};
// (tanh(t)/t - 1) / z, z = t^2, up to 0.625; error below 2^-61.3
inline constexpr double kTanhF64[] = {
    -0x1.5555555555552p-2,  0x1.1111111110c5ap-3,  -0x1.ba1ba1b9d22d9p-5,  0x1.664f4870e6e8dp-6,
    -0x1.226e32d42a670p-7,  0x1.d6d35aedd5d69p-9,  -0x1.7d9c3c1ef6b05p-10, 0x1.350bd39b37ef4p-11,
    -0x1.f11691e05e8b0p-13, 0x1.8026db735434cp-14, -0x1.faf27685c3749p-16, 0x1.965317ea3e3ccp-18,
};
// sigmoid(t) - 1/2 in z = t^2, from ONNX Runtime's MLAS: numerator over t
inline constexpr double kSigmoidTopF32[] = {
    0x1.fc7e640000000p-3,  0x1.16fab00000000p-7,  0x1.fe82760000000p-15,
    0x1.f09d960000000p-24, 0x1.806aa20000000p-35,
};
// sigmoid(t) - 1/2 in z = t^2, from ONNX Runtime's MLAS: denominator
inline constexpr double kSigmoidBottomF32[] = {
    0x1.fc7e680000000p-1,  0x1.de7c300000000p-4,  0x1.be2a7e0000000p-10,
    0x1.a62fba0000000p-18, 0x1.8be4f60000000p-28, 0x1.5789ea0000000p-41,
};
// (sin(t)/t - 1) / z, z = t^2, up to pi/4; error below 2^-32.3
inline constexpr double kSinF32[] = {
    -0x1.5555560000000p-3,
    0x1.1111660000000p-7,
    -0x1.a04a7c0000000p-13,
    0x1.7867f40000000p-19,
};
// (cos(t) - 1 + z/2) / z^2, z = t^2, up to pi/4; error below 2^-33.1
inline constexpr double kCosF32[] = {
    0x1.55554a0000000p-5,
    -0x1.6c0c2e0000000p-10,
    0x1.99eac20000000p-16,
};
// (sin(t)/t - 1) / z, z = t^2, up to pi/4; error below 2^-57.9
inline constexpr double kSinF64[] = {
    -0x1.5555555555548p-3, 0x1.111111110f775p-7,   -0x1.a01a019bf64fap-13,
    0x1.71de3563063a5p-19, -0x1.ae5e57a5f7feap-26, 0x1.5d8f1f3f89e72p-33,
};
// (cos(t) - 1 + z/2) / z^2, z = t^2, up to pi/4; error below 2^-64.1
inline constexpr double kCosF64[] = {
    0x1.555555555554bp-5,   -0x1.6c16c16c15046p-10, 0x1.a01a019c9697fp-16,
    -0x1.27e4f7f80e871p-22, 0x1.1ee9e0a72f418p-29,  -0x1.8fa9264b27f3cp-37,
};
// pi/2, the first part exact times 23 bits
inline constexpr double kHalfPiF32[] = {
    0x1.921fb54000000p+0,
    0x1.10b4611a62633p-30,
};
// pi/2, the first parts exact times 20 bits
inline constexpr double kHalfPiF64[] = {
    0x1.921fb54400000p+0,
    0x1.0b4611a600000p-34,
    0x1.3198a2e037073p-69,
};
// erf(t)/t - 1 in z = t^2, up to 1; error below 2^-29.5
inline constexpr double kErfSmallF32[] = {
    0x1.06eba80000000p-3, -0x1.8127400000000p-2,  0x1.ce2d500000000p-4,  -0x1.b7fe8e0000000p-6,
    0x1.542dee0000000p-8, -0x1.a5099e0000000p-11, 0x1.4c2f4c0000000p-14,
};
// erf(t)/t - 1 in z = t^2, up to 1; error below 2^-56.2
inline constexpr double kErfSmallF64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b037a0bp-2,  0x1.ce2f21a0446fap-4,  -0x1.b82ce31320191p-6,
    0x1.565bcd2c6ebc5p-8,  -0x1.c02dbb83c3e3cp-11, 0x1.f9a46af0c5c98p-14, -0x1.f4f891941e9c2p-17,
    0x1.bd2257f3173a4p-20, -0x1.924a92fdb5ae9p-23, 0x1.a1ccb29765f13p-25, -0x1.354c08cbc490dp-25,
    0x1.afeaa4160bd92p-26, -0x1.9c3b75f63229ep-27, 0x1.d702f32d41325p-29, -0x1.e6402940bf7aap-32,
};
// between the centers of kErfStepsF32
inline constexpr double kErfStepF32[] = {
    0x1.0800000000000p-2,
};
// erf(t) in u = t - i * kErfStepF32: coefficient by coefficient, those of i = 0 to 15;
// for i = 0 of erf(t) - t
inline constexpr double kErfStepsF32[][16] = {
    {0x0.0p+0, 0x1.236bf00000000p-2, 0x1.1178920000000p-1, 0x1.73b1020000000p-1,
     0x1.b5e6300000000p-1, 0x1.dd07880000000p-1, 0x1.f14e820000000p-1, 0x1.fa84fe0000000p-1,
     0x1.fe30800000000p-1, 0x1.ff789e0000000p-1, 0x1.ffdd180000000p-1, 0x1.fff8100000000p-1,
     0x1.fffe680000000p-1, 0x1.ffffb80000000p-1, 0x1.fffff40000000p-1, 0x1.fffffe0000000p-1},
    {0x1.06eba80000000p-3, 0x1.0e4a0a0000000p+0, 0x1.bada580000000p-1, 0x1.3da26e0000000p-1,
     0x1.8eed380000000p-2, 0x1.b6a8560000000p-3, 0x1.a64de60000000p-4, 0x1.63f3f40000000p-5,
     0x1.06ae140000000p-6, 0x1.536fc00000000p-8, 0x1.8005f80000000p-10, 0x1.7c62ae0000000p-12,
     0x1.49e19e0000000p-14, 0x1.f4f1ac0000000p-17, 0x1.4d02c80000000p-19, 0x1.83a32c0000000p-22},
    {0x1.36c6a00000000p-166, -0x1.16bb8a0000000p-2, -0x1.c8ada80000000p-2, -0x1.eb56440000000p-2,
     -0x1.9b653c0000000p-2, -0x1.1abbd60000000p-2, -0x1.46a11a0000000p-3, -0x1.412f3a0000000p-4,
     -0x1.0eefd00000000p-5, -0x1.899eba0000000p-7, -0x1.efa2560000000p-9, -0x1.0db3660000000p-10,
     -0x1.efc1900000000p-13, -0x1.95f5020000000p-15, -0x1.6eb7880000000p-19, 0x1.14885a0000000p-19},
    {-0x1.81265e0000000p-2, -0x1.3884b20000000p-2, -0x1.147a680000000p-3, 0x1.4cad600000000p-5,
     0x1.2bb3de0000000p-3, 0x1.53b8e00000000p-3, 0x1.0a73960000000p-3, 0x1.471d600000000p-4,
     0x1.48b1c00000000p-5, 0x1.144b6c0000000p-6, 0x1.89670c0000000p-8, 0x1.de247c0000000p-10,
     0x1.f2aad40000000p-12, 0x1.bfef4c0000000p-14, 0x1.5b82be0000000p-16, 0x1.d2aa260000000p-19},
    {-0x1.495d840000000p-160, 0x1.089dd00000000p-3, 0x1.74a9ea0000000p-3, 0x1.262b5e0000000p-3,
     0x1.e0e6dc0000000p-5, -0x1.d2fe780000000p-7, -0x1.81ab1a0000000p-5, -0x1.77f4d40000000p-5,
     -0x1.ecf1de0000000p-6, -0x1.041cd80000000p-6, -0x1.9ce7960000000p-8, -0x1.28b3660000000p-9,
     -0x1.05663e0000000p-10, -0x1.00270a0000000p-12, -0x1.5f07de0000000p-12,
     -0x1.6a75f00000000p-13},
    {0x1.cb96100000000p-4, 0x1.46dec40000000p-4, 0x1.3c82580000000p-9, -0x1.cc12a80000000p-5,
     -0x1.1483d20000000p-4, -0x1.58d1660000000p-5, -0x1.41c96e0000000p-7, 0x1.2795620000000p-7,
     0x1.a836760000000p-7, 0x1.3321900000000p-7, 0x1.4130b60000000p-8, 0x1.0807ea0000000p-9,
     0x1.6264c60000000p-11, 0x1.8c1b360000000p-13, 0x1.74f6dc0000000p-15, 0x1.2a42680000000p-17},
};
// ln(erfc(t)) in u = t - 2, t in 1..4, against erf; error below 2^-30.4
inline constexpr double kErfLargeF32[] = {
    -0x1.575b320000000p+2, -0x1.1ac3240000000p+2,  -0x1.d8f6160000000p-1,
    -0x1.0dda6a0000000p-6, 0x1.d4011e0000000p-9,   -0x1.79e7880000000p-11,
    0x1.2c578e0000000p-13, -0x1.aaf9740000000p-16, -0x1.883cac0000000p-19,
};
// ln(erfc(t)) in u = t - 1.75, t in 1..2.5, against erf; error below 2^-57.4
inline constexpr double kErfMiddleF64[] = {
    -0x1.1457e04194ecdp+2,  -0x1.fad487adf079ap+1,  -0x1.d1e3ad70d73fbp-1,  -0x1.508223ef320cap-6,
    0x1.2f19753dd375cp-8,   -0x1.f9772140f0e95p-11, 0x1.6e005ab9cddd5p-13,  -0x1.8e50e7e5eca73p-16,
    0x1.bc4734215de20p-21,  0x1.de55431d8a0bbp-21,  -0x1.af90884c680ffp-22, 0x1.e4b442d785638p-24,
    -0x1.8e1399f962e48p-26, 0x1.b3ef0fd53c130p-29,  0x1.d03f9398ced86p-32,  -0x1.10098b41854d3p-31,
};
// ln(erfc(t)) in u = t - 4, t in 2.5..6, against erf; error below 2^-63.2
inline constexpr double kErfLargeF64[] = {
    -0x1.1fcdf0a1a28adp+4, -0x1.07906645f0b04p+3,  -0x1.f2675440f2cdfp-1, -0x1.f12cce8e75b38p-9,
    0x1.3136257c58e59p-11, -0x1.7dcdb90d38af2p-14, 0x1.da947c2cdcd46p-17, -0x1.1de392d301632p-19,
    0x1.65cbbabf47c06p-22, -0x1.0cac132540206p-25, 0x1.46404ecf743fep-27, -0x1.6babea7949584p-33,
};

// 2/pi = 0.10100010..., from the bit of weight 1/2 on; 64 zero bits stand before it.
inline constexpr unsigned long long kTwoOverPi[] = {
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
};

}  // namespace ingot
