// Rows of the mutation table: one change to the good artifact, and the one error that comes out.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "artifact_builder.h"

namespace ingot::test {
namespace {

using Builder = ArtifactBuilder;
constexpr std::uint32_t kNone = INGOT_NO_INDEX;

TestVariant& first(Builder& b) { return b.variants[0]; }

// Signed rows: the change happens before digests and signatures.
struct SignedRow {
  const char* id;
  ingot_status expected;
  void (*change)(Builder&);
};

// Changes an entry of the section table after layout.
template <typename Change>
void table(Builder& b, std::uint32_t type, Change change) {
  b.on_section_table = [=](std::vector<TestSection>& sections) {
    for (TestSection& s : sections) {
      if (s.entry.type == type) {
        change(s.entry);
        return;
      }
    }
  };
}

TestSection* find(std::vector<TestSection>& sections, std::uint32_t type) {
  for (TestSection& s : sections) {
    if (s.entry.type == type) return &s;
  }
  return nullptr;
}

void remove(Builder& b, std::uint32_t type) {
  b.on_sections = [=](std::vector<TestSection>& sections) {
    // The last one of the type, so that a section of the second variant goes first.
    for (std::size_t i = sections.size(); i-- > 0;) {
      if (sections[i].entry.type == type) {
        sections.erase(sections.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      }
    }
  };
}

const SignedRow kSignedRows[] = {
    {"good", 0, [](Builder&) {}},
    {"B25", 203, [](Builder& b) { b.signatures = {{9}}; }},
    {"B26", 205, [](Builder& b) { b.signatures = {{1, INGOT_PURPOSE_DEVELOPMENT}}; }},
    {"B31", 202, [](Builder& b) { b.signatures.clear(); }},
    {"B32", 201, [](Builder& b) { b.signatures.assign(9, {1}); }},
    {"C02", 303, [](Builder& b) { std::memcpy(b.header.product, "cabin-vision", 12); }},
    {"C03", 303, [](Builder& b) { b.header.product[20] = 'x'; }},
    {"C04", 304, [](Builder& b) { b.header.build_class = 1; }},
    {"C05", 402, [](Builder& b) { b.header.build_class = 4; }},
    {"C06", 301, [](Builder& b) { b.header.features_required = 1ull << 40; }},
    {"C07", 0, [](Builder& b) { b.header.features_optional = 1ull << 40; }},
    {"C08", 0, [](Builder& b) { b.header.version_minor = 7; }},
    {"C10", 409,
     [](Builder& b) {
       b.fix_model = false;
       std::memset(b.header.model_sha256, 0, 32);
     }},
    {"D01", 401, [](Builder& b) { b.header.reserved_150[3] = 1; }},
    {"D02", 401, [](Builder& b) { b.header.reserved_78 = 1; }},
    {"D03", 402, [](Builder& b) { b.on_header = [](auto& h) { h.digest_table_offset += 256; }; }},
    {"D04", 402,
     [](Builder& b) {
       b.on_header = [](auto& h) {
         h.body_offset += 65536;
         --h.block_count;
       };
     }},
    {"D05", 306, [](Builder& b) { b.on_header = [](auto& h) { h.section_count = 0; }; }},
    {"D06", 306, [](Builder& b) { b.on_header = [](auto& h) { h.section_count = 1025; }; }},
    {"D07", 306, [](Builder& b) { b.header.variant_count = 33; }},
    {"D08", 402, [](Builder& b) { b.header.section_entry_size = 48; }},
    {"D09", 402, [](Builder& b) { b.header.section_table_offset = 1024; }},
    {"D10", 402, [](Builder& b) { b.on_header = [](auto& h) { --h.block_count; }; }},
    {"D11", 402, [](Builder& b) { b.header.block_size_log2 = 12; }},
    {"D12", 402, [](Builder& b) { b.on_header = [](auto& h) { h.body_offset += 65536; }; }},
    {"D13", 402, [](Builder& b) { b.on_header = [](auto& h) { h.body_offset += 256; }; }},
    {"D14", 402, [](Builder& b) { b.header.hash_algorithm = 2; }},
    {"D15", 306, [](Builder& b) { b.header.variant_count = 0; }},
    {"D16", 407, [](Builder& b) { b.header.variant_count = 3; }},
    {"E01", 404, [](Builder& b) { table(b, 3, [](auto& e) { e.offset -= 256; }); }},
    {"E02", 404, [](Builder& b) { table(b, 3, [](auto& e) { e.offset += 256; }); }},
    {"E03", 404, [](Builder& b) { table(b, 3, [](auto& e) { e.offset = 0 - 256ull; }); }},
    {"E04", 404, [](Builder& b) { table(b, 3, [](auto& e) { e.span = 0 - 256ull; }); }},
    {"E05", 404, [](Builder& b) { table(b, 3, [](auto& e) { e.size = e.span + 1; }); }},
    {"E06", 404, [](Builder& b) { table(b, 3, [](auto& e) { e.size = 0; }); }},
    {"E07", 404, [](Builder& b) { table(b, 64, [](auto& e) { e.span += 256; }); }},
    {"E08", 403, [](Builder& b) { table(b, 3, [](auto& e) { e.flags |= 8; }); }},
    {"E09", 404, [](Builder& b) { table(b, 3, [](auto& e) { e.flags |= 2; }); }},
    {"E10", 403,
     [](Builder& b) {
       table(b, 23, [](auto& e) { e.flags = static_cast<std::uint16_t>(e.flags & ~2); });
     }},
    {"E11", 403,
     [](Builder& b) {
       table(b, 17, [](auto& e) { e.flags = static_cast<std::uint16_t>(e.flags & ~1); });
     }},
    {"E12", 403, [](Builder& b) { table(b, 3, [](auto& e) { e.reserved[7] = 1; }); }},
    {"E13", 403, [](Builder& b) { table(b, 3, [](auto& e) { e.entry_size = 127; }); }},
    {"E14", 403, [](Builder& b) { table(b, 3, [](auto& e) { ++e.entry_count; }); }},
    {"E15", 403, [](Builder& b) { table(b, 3, [](auto& e) { e.entry_count = kNone; }); }},
    {"E15 code", 403, [](Builder& b) {
       table(b, INGOT_SECTION_CODE, [](auto& e) { e.entry_size = 8; });
     }},
    {"E15 data", 403, [](Builder& b) {
       table(b, INGOT_SECTION_DATA, [](auto& e) { e.entry_count = 1; });
     }},
    {"E15 manifest", 403, [](Builder& b) {
       table(b, INGOT_SECTION_MANIFEST, [](auto& e) { e.entry_count = 1; });
     }},
    {"E16", 403, [](Builder& b) { table(b, 17, [](auto& e) { e.variant = 2; }); }},
    {"E17", 403, [](Builder& b) { table(b, 17, [](auto& e) { e.variant = 0xFFFF; }); }},
    {"E18", 406,
     [](Builder& b) {
       b.on_sections = [](auto& s) { s.insert(s.begin() + 3, *find(s, INGOT_SECTION_IO)); };
     }},
    {"E19", 405, [](Builder& b) { table(b, 3, [](auto& e) { e.type = 40; }); }},
    {"E20", 0,
     [](Builder& b) {
       b.on_sections = [](auto& s) {
         s.push_back(s.back());
         s.back().entry.type = 900;
       };
     }},
    {"E21", 407, [](Builder& b) { remove(b, INGOT_SECTION_STRINGS); }},
    {"E22", 407, [](Builder& b) { remove(b, INGOT_SECTION_CALLS); }},
    {"E23", 404,
     [](Builder& b) {
       b.manifest.assign(300000, ' ');
       table(b, 64, [](auto& e) { e.size = 1; });
     }},
    {"E24", 404,
     [](Builder& b) {
       b.manifest.assign(1000, ' ');
       table(b, 64, [](auto& e) {
         e.span -= 256;
         e.size = 256;
       });
     }},
    {"E25", 404, [](Builder& b) { table(b, 3, [](auto& e) { e.span = 0; }); }},
    {"E26", 403, [](Builder& b) { table(b, 2, [](auto& e) { e.variant = 0; }); }},
    {"E27", 403, [](Builder& b) { table(b, 3, [](auto& e) { e.index = 1; }); }},
    {"E28", 407, [](Builder& b) { remove(b, INGOT_SECTION_MANIFEST); }},
    {"E29", 406,
     [](Builder& b) {
       b.on_sections = [](auto& s) {
         s.insert(s.begin() + 3, *find(s, INGOT_SECTION_IO));
         s[3].entry.variant = 0;
       };
     }},
    {"E30", 407, [](Builder& b) { table(b, 3, [](auto& e) { e.variant = 0; }); }},
    {"E31", 407, [](Builder& b) { remove(b, INGOT_SECTION_IO); }},
    {"E32", 306,
     [](Builder& b) {
       IngotBufferRecord scratch = first(b).buffers[6];
       scratch.nbytes = 0;
       while (first(b).buffers.size() < 4097) {
         scratch.id = static_cast<std::uint32_t>(first(b).buffers.size());
         first(b).buffers.push_back(scratch);
       }
     }},
    {"E33", 306, [](Builder& b) { b.strings.resize(17u << 20); }},
    // STRINGS comes first and is shorter than 256 bytes.
    {"E34", 110, [](Builder& b) { b.on_content = [](Bytes& file) { file[65536 + 255] = 1; }; }},
    {"E35", 110, [](Builder& b) { b.on_content = [](Bytes& file) { file[65535] = 1; }; }},
    {"F01", 408, [](Builder& b) { b.io[0].name.offset = 1u << 20; }},
    {"F02", 408,
     [](Builder& b) {
       ++b.io[0].name.offset;
       --b.io[0].name.length;
     }},
    {"F03", 408, [](Builder& b) { b.io[0].name.length = 0; }},
    {"F04", 408, [](Builder& b) { --b.io[0].name.length; }},
    {"F05", 408, [](Builder& b) { b.io[0].name.offset = kNone; }},
    {"F06", 408, [](Builder& b) { b.io[1].name = b.io[0].name; }},
    {"F07", 408, [](Builder& b) { b.strings[b.io[0].name.offset + 1] = '\x1b'; }},
    {"F08", 411, [](Builder& b) { b.io[1].dtype = 99; }},
    {"F09", 411, [](Builder& b) { b.io[1].rank = 9; }},
    {"F10 (amended: a zero dimension is legal, the sizes no longer fit)", 411,
     [](Builder& b) { b.io[1].shape[0] = 0; }},
    {"F11", 411, [](Builder& b) { b.io[0].nbytes = 32 * 16 * 3 / 2; }},
    {"F12", 411, [](Builder& b) { b.io[1].logical_nbytes = 511; }},
    {"F13", 411, [](Builder& b) { b.io[2].strides[0] = 1ull << 63; }},
    {"F14", 411, [](Builder& b) { b.io[1].shape[1] = 2; }},
    {"F15", 411, [](Builder& b) { b.io[1].direction = 0; }},
    {"F16", 411,
     [](Builder& b) {
       IngotIoRecord& io = b.io[2];
       io.rank = 3;
       for (int i = 0; i < 3; ++i) io.shape[i] = 1u << 30;
       io.strides[0] = 1ull << 40, io.strides[1] = 1ull << 33, io.strides[2] = 4;
     }},
    {"F17", 411,
     [](Builder& b) {
       b.io.resize(1);
       b.slices.clear();
     }},
    {"F18", 411,
     [](Builder& b) {
       b.io[2].shape[0] = 2;
       b.io[2].strides[0] = 32;
     }},
    {"F20", 412, [](Builder& b) { b.slices[3].shape[0] = 13, b.slices[3].nbytes = 52; }},
    {"F21", 412,
     [](Builder& b) {
       b.slices[3].offset = 20, b.slices[3].shape[0] = 11, b.slices[3].nbytes = 44;
     }},
    {"F22", 412,
     [](Builder& b) {
       b.slices[3].offset = 12, b.slices[3].shape[0] = 13, b.slices[3].nbytes = 52;
     }},
    {"F23", 0,
     [](Builder& b) {
       b.slices[3].offset = 12, b.slices[3].shape[0] = 13, b.slices[3].nbytes = 52;
       b.slices[3].flags = 1;
     }},
    {"F24", 412, [](Builder& b) { b.slices[3].flags = 1; }},
    {"F25", 412, [](Builder& b) { b.slices[3].flags = 2; }},
    {"F26", 412, [](Builder& b) { b.slices[3].shape[0] = 11, b.slices[3].nbytes = 44; }},
    {"F27", 412, [](Builder& b) { b.slices[3].shape[0] = 11; }},
    {"F28", 412, [](Builder& b) { b.slices[3].nbytes = 12; }},
    {"F29", 412, [](Builder& b) { b.slices[3].offset = 0 - 32ull; }},
    {"F30", 412, [](Builder& b) { b.slices[3].dtype = INGOT_DTYPE_I32; }},
    {"F31", 412, [](Builder& b) { b.slices[3].io = 99; }},
    {"F31_first", 412, [](Builder& b) { b.slices[0].io = INGOT_NO_INDEX; }},
    {"F32", 412, [](Builder& b) { b.slices[1].offset = 260; }},
    {"F33", 412, [](Builder& b) { b.slices[1].offset = 320; }},
    {"F35", 412, [](Builder& b) { std::swap(b.slices[1], b.slices[2]); }},
    {"F36", 412, [](Builder& b) { b.slices.erase(b.slices.begin()); }},
    {"F37", 412, [](Builder& b) { std::swap(b.slices[2], b.slices[3]); }},
    {"F38", 410, [](Builder& b) { b.cameras[0].stride = 30; }},
    {"F39", 410, [](Builder& b) { b.cameras[0].copy_nbytes -= 64; }},
    {"F40", 410, [](Builder& b) { b.cameras[0].buffer_nbytes = 3071; }},
    {"F41", 410, [](Builder& b) { b.cameras[0].uv_offset = 1024; }},
    {"F42", 410, [](Builder& b) { b.cameras[0].height = 15; }},
    {"F43", 410, [](Builder& b) { b.cameras[0].y_height = 15; }},
    {"F44", 410, [](Builder& b) { b.cameras[0].stride = kNone; }},
    {"F45", 410, [](Builder& b) { b.io[0].camera = 7; }},
    {"F46", 410, [](Builder& b) { b.io[2].camera = 0; }},
    {"F47", 410, [](Builder& b) { b.cameras[0].pixel_format = 3; }},
    {"G01", 413, [](Builder& b) { first(b).record.endian = 2; }},
    {"G02", 413, [](Builder& b) { first(b).record.host_arena_bytes = 4096; }},
    {"G05", 503, [](Builder& b) { first(b).record.cpu_features[0] |= 1ull << 50; }},
    {"G05 word 3", 503, [](Builder& b) { first(b).record.cpu_features[3] = 1; }},
    {"G08", 506,
     [](Builder& b) {
       first(b).record.device_kind = INGOT_DEVICE_CUDA;
       first(b).record.device_arch_rule = INGOT_DEVICE_EXACT;
     }},
    {"G10", 502, [](Builder& b) { first(b).record.os = INGOT_OS_QNX; }},
    {"G11", 413, [](Builder& b) { first(b).record.fp_control = 0x11F80; }},
    {"G12", 413, [](Builder& b) { first(b).record.fp_control = 0x1F00; }},
    {"G13", 413,
     [](Builder& b) {
       b.on_sections = [](auto& s) {
         TestSection* v = find(s, INGOT_SECTION_VARIANTS);
         v->bytes.resize(3 * 256);
         v->entry.entry_count = 3;
       };
     }},
    {"G14", 413, [](Builder& b) { first(b).record.device_kind = INGOT_DEVICE_CUDA; }},
    {"G15", 413, [](Builder& b) { b.header.max_host_arena = 4096; }},
    {"G16", 413, [](Builder& b) { first(b).record.device_arch = 90; }},
    {"G17", 413, [](Builder& b) { b.variants[1].record.host_arena_bytes = 1ull << 63; }},
    {"G18", 413, [](Builder& b) { first(b).record.sve_bits = 512; }},
    {"G21", 307,
     [](Builder& b) {
       b.fix_interface = false;
       std::memset(first(b).record.interface_sha256, 3, 32);
     }},
    {"H01", 414, [](Builder& b) { first(b).arenas[0].nbytes = 1537; }},
    {"H02", 414, [](Builder& b) { first(b).arenas[0].nbytes = 1ull << 63; }},
    {"H03", 414, [](Builder& b) { first(b).arenas[0].role = 3; }},
    {"H04", 414, [](Builder& b) { first(b).arenas[0].nbytes += 256; }},
    {"H05", 415, [](Builder& b) { first(b).buffers[1].id = 2; }},
    {"H06", 415, [](Builder& b) { first(b).buffers[6].kind = 7; }},
    {"H07", 415, [](Builder& b) { first(b).buffers[6].arena_offset = 1536; }},
    {"H08", 415, [](Builder& b) { first(b).buffers[6].arena_offset = 0 - 256ull; }},
    {"H09", 415, [](Builder& b) { first(b).buffers[6].nbytes = 0 - 256ull; }},
    {"H10", 415, [](Builder& b) { first(b).buffers[6].arena_offset = 772; }},
    {"H11", 415, [](Builder& b) { first(b).buffers[6].align_log2 = 4; }},
    {"H12", 415, [](Builder& b) { first(b).buffers[1].nbytes = 256; }},
    {"H13", 415, [](Builder& b) { first(b).buffers[6].io = 1; }},
    {"H14", 415, [](Builder& b) { first(b).buffers[3].arena = 0; }},
    {"H15", 415, [](Builder& b) { first(b).buffers[6].last_call = 6; }},
    {"H16", 415, [](Builder& b) { first(b).buffers[6].first_call = 3; }},
    {"H17", 415, [](Builder& b) { first(b).buffers[1].flags = INGOT_BUFFER_IN_PLACE; }},
    {"H18", 415, [](Builder& b) { first(b).buffers[5].arena = 0; }},
    {"H19", 415, [](Builder& b) { first(b).buffers[6].arena = 99; }},
    {"H20", 415,
     [](Builder& b) {
       first(b).buffers[1].kind = INGOT_BUFFER_SCRATCH;
       first(b).buffers[1].io = kNone;
     }},
    {"H21", 415, [](Builder& b) { first(b).buffers[4].io = 2; }},
    {"H22", 416, [](Builder& b) { first(b).buffers[4].arena_offset = 0; }},
    {"H23", 415, [](Builder& b) { first(b).buffers[3].flags = INGOT_BUFFER_IN_PLACE; }},
    {"H24", 415,
     [](Builder& b) {
       first(b).buffers[6] = first(b).buffers[1];
       first(b).buffers[6].id = 6;
     }},
    {"H25", 416, [](Builder& b) { first(b).buffers[8].first_call = 1; }},
    {"H26", 417,
     [](Builder& b) {
       b.on_sections = [](auto& s) {
         for (std::uint32_t i = 0; i < s.size(); ++i) {
           if (s[i].entry.type == INGOT_SECTION_CODE) {
             std::memcpy(find(s, INGOT_SECTION_BUFFERS)->bytes.data() + 5 * 64 + 0x20, &i, 4);
             return;
           }
         }
       };
     }},
    {"H27", 417, [](Builder& b) { first(b).buffers[5].init_nbytes = 60; }},
    {"H28", 415, [](Builder& b) { first(b).buffers[6].memory = 1; }},
    {"H29", 417, [](Builder& b) { first(b).buffers[5].init_offset = 256; }},
    {"H30", 417, [](Builder& b) { first(b).buffers[5].init_offset = 16; }},
    {"H31", 417, [](Builder& b) { first(b).buffers[5].init_section = 999; }},
    {"H32", 417,
     [](Builder& b) {
       first(b).buffers[6].init_section = first(b).buffers[5].init_section;
       first(b).buffers[6].init_nbytes = 64;
     }},
    {"I01", 418, [](Builder& b) { first(b).views[1].buffer = 99; }},
    {"I02", 418, [](Builder& b) { first(b).views[1].offset = 4; }},
    {"I03", 418, [](Builder& b) { first(b).views[1].offset = 0 - 4ull; }},
    {"I04", 418, [](Builder& b) { first(b).views[1].nbytes = 60; }},
    {"I05", 418,
     [](Builder& b) {
       first(b).views[1].shape[0] = 1u << 30;
       first(b).views[1].strides[0] = 1ull << 40;
     }},
    {"I06", 418, [](Builder& b) { first(b).views[6].strides[0] = 0; }},
    {"I07", 418, [](Builder& b) { first(b).views[1].strides[0] = 0; }},
    {"I08", 418,
     [](Builder& b) {
       first(b).views[6].shape[0] = 2;
       first(b).views[6].strides[0] = 32;
     }},
    {"I09", 418,
     [](Builder& b) {
       first(b).views[6].shape[0] = 2;
       first(b).views[6].strides[0] = 32;
       first(b).views[6].nbytes = 4 + 32 + 60;
     }},
    {"I10", 418,
     [](Builder& b) {
       first(b).views[1].offset = 2, first(b).views[1].shape[0] = 15, first(b).views[1].nbytes = 60;
     }},
    {"I11", 418, [](Builder& b) { first(b).views[1].dtype = 0; }},
    {"I12", 418, [](Builder& b) { first(b).views[1].shape[2] = 1; }},
    {"I13", 418, [](Builder& b) { first(b).views[1].flags = 1; }},
    {"J01", 420, [](Builder& b) { first(b).programs[0].entry_offset = 4096; }},
    {"J02", 420, [](Builder& b) { first(b).programs[0].entry_offset = 0 - 16ull; }},
    {"J03", 420, [](Builder& b) { first(b).programs[0].entry_offset = 8; }},
    {"J04", 420,
     [](Builder& b) {
       first(b).programs[0].entry_offset = first(b).code.size();
       first(b).programs[0].code_nbytes = 16;
     }},
    {"J05", 420, [](Builder& b) { first(b).programs[0].code_nbytes = first(b).code.size() + 1; }},
    {"J06", 420,
     [](Builder& b) { first(b).programs[0].code_section = 0; }},
    {"J07", 420,
     [](Builder& b) {
       b.on_sections = [](auto& s) {
         for (std::uint32_t i = 0; i < s.size(); ++i) {
           if (s[i].entry.type == INGOT_SECTION_CODE && s[i].entry.variant == 1) {
             std::memcpy(find(s, INGOT_SECTION_PROGRAMS)->bytes.data() + 0x0C, &i, 4);
           }
         }
       };
     }},
    {"J08", 420, [](Builder& b) { first(b).programs[2].param_first = 8; }},
    {"J09", 420, [](Builder& b) { first(b).programs[2].param_count = 33; }},
    {"J10", 420, [](Builder& b) { first(b).programs[0].stack_bytes = 2048; }},
    {"J11", 420, [](Builder& b) { first(b).programs[0].shared_bytes = 16; }},
    {"J12", 420, [](Builder& b) { first(b).programs[0].flags = 1; }},
    {"J13", 420, [](Builder& b) { first(b).programs[0].kind = 4; }},
    {"J14", 419, [](Builder& b) { first(b).params[0].access = 0; }},
    {"K01", 421, [](Builder& b) { first(b).calls[1].kind = 9; }},
    {"K02", 421, [](Builder& b) { first(b).calls[0].program = 99; }},
    {"K03", 421, [](Builder& b) { first(b).calls[1].arg_first = 1; }},
    {"K04", 421, [](Builder& b) { first(b).calls[0].arg_count = kNone; }},
    {"K05", 421, [](Builder& b) { first(b).calls[0].flags = 1; }},
    {"K06", 421, [](Builder& b) { first(b).calls[0].grid[0] = 0; }},
    {"K07", 421, [](Builder& b) { first(b).calls[0].grid[0] = kNone; }},
    {"K08", 421, [](Builder& b) { first(b).calls[0].block[0] = 1; }},
    {"K09", 421, [](Builder& b) { first(b).calls[5].grid[0] = 1; }},
    {"K10", 421, [](Builder& b) { first(b).calls[0].queue = 1; }},
    {"K11", 421, [](Builder& b) { first(b).args[0].kind = 2; }},
    {"K12", 421, [](Builder& b) { first(b).args[0].access = 0; }},
    {"K13", 421, [](Builder& b) { first(b).programs[0].param_count = 1; }},
    {"K14", 421, [](Builder& b) { first(b).args[3].access = 2; }},
    {"K15", 421,
     [](Builder& b) {
       IngotViewRecord strided = first(b).views[1];
       strided.shape[0] = 8, strided.strides[0] = 8, strided.nbytes = 60;
       first(b).views.push_back(strided);
       first(b).args[3].view = 9;
     }},
    {"K16", 421, [](Builder& b) { first(b).args[0].view = 99; }},
    {"K17", 421,
     [](Builder& b) { first(b).programs[0].param_count = 3; }},
    {"K18", 422, [](Builder& b) { first(b).params[0].nbytes = 32; }},
    {"K19", 422,
     [](Builder& b) {
       first(b).params[3].access = 3;
       first(b).args[6].access = 3;
     }},
    {"K20", 422,
     [](Builder& b) {
       first(b).params[0].access = 3;
       first(b).args[0].access = 3;
     }},
    {"K21", 422,
     [](Builder& b) {
       first(b).params[4].access = 3;
       first(b).args[7].access = 3;
     }},
    {"K22", 422, [](Builder& b) { first(b).args[0].access = 3; }},
    {"K23", 422, [](Builder& b) { first(b).params[0].dtype = INGOT_DTYPE_I8; }},
    {"K24", 422, [](Builder& b) { first(b).params[0].align_log2 = 9; }},
    {"K25", 422,
     [](Builder& b) {
       first(b).args[0].kind = 1;
       first(b).args[0].view = kNone;
     }},
    {"K26", 423, [](Builder& b) { first(b).buffers[6].first_call = 1; }},
    {"K27", 423, [](Builder& b) { first(b).args[5].view = 2, first(b).buffers[7].last_call = 3,
                                first(b).buffers[8].arena_offset = 1280, first(b).calls[1] = first(b).calls[5],
                                first(b).calls[1].arg_first = 2,
                                first(b).args.erase(first(b).args.begin() + 2),
                                first(b).calls[2].arg_first = 2, first(b).calls[3].arg_first = 4,
                                first(b).calls[4].arg_first = 9, first(b).calls[5].arg_first = 11,
                                first(b).args[4].view = 2; }},
    {"K27 nothing to write", 0, [](Builder& b) {
       TestVariant& v = first(b);
       for (std::uint32_t n = 0; n < 2; ++n) {
         IngotBufferRecord buffer = v.buffers[8];
         buffer.id = 9 + n;
         buffer.nbytes = 0;
         buffer.first_call = buffer.last_call = 5;
         v.buffers.push_back(buffer);
         IngotViewRecord view = v.views[3];
         view.buffer = 9 + n;
         view.shape[0] = 0;
         view.nbytes = 0;
         v.views.push_back(view);
         IngotArgRecord arg = v.args[3 + n];
         arg.view = static_cast<std::uint32_t>(v.views.size() - 1);
         v.args.push_back(arg);
       }
       v.calls[5] = v.calls[2];
       v.calls[5].arg_first = 12;
     }},
    {"K28", 423, [](Builder& b) { first(b).args[8].view = 1, first(b).buffers[6].last_call = 3; }},
    {"K29", 423, [](Builder& b) { first(b).args[9].view = 1, first(b).buffers[6].last_call = 3; }},
    {"K30", 421, [](Builder& b) { first(b).args[3].view = 8; }},
    {"K31", 421, [](Builder& b) { first(b).args[4].view = 1; }},
    {"K32", 421, [](Builder& b) { first(b).calls[4].arg_count = 1, first(b).calls[5].arg_count = 1,
                                first(b).calls[5].arg_first = 11,
                                first(b).programs[2].param_count = 1; }},
    {"K33", 421, [](Builder& b) { first(b).calls[1].immediate = 256; }},
    {"K34", 421, [](Builder& b) { first(b).calls[2].immediate = 1; }},
    {"K36", 421, [](Builder& b) { first(b).args.push_back(first(b).args[0]); }},
    {"L01", 424, [](Builder& b) { b.refdata.resize(b.refdata.size() - 1); }},
    {"L02", 424, [](Builder& b) { b.refs[2].nbytes = 32; }},
    {"L03", 424, [](Builder& b) { b.refs[2].atol = std::nanf(""); }},
    {"L04", 424, [](Builder& b) { b.refs[2].atol = std::numeric_limits<float>::infinity(); }},
    {"L05", 310, [](Builder& b) { b.refs[2].rtol = 3e38f; }},
    {"L06", 310, [](Builder& b) { b.refs[2].atol = 0.06f; }},
    {"L07", 424, [](Builder& b) { b.refs[2].compare = INGOT_COMPARE_EXACT; }},
    {"L08", 424, [](Builder& b) { b.refs[0].atol = 0.01f; }},
    {"L09", 424, [](Builder& b) { b.refs[3].offset = b.refs[0].offset; }},
    {"L10", 424, [](Builder& b) { b.refs[2].rtol = -0.01f; }},
    {"L11", 424, [](Builder& b) { b.refs[3].step = b.refs[4].step = b.refs[5].step = 2; }},
    {"L12", 424, [](Builder& b) { b.refs[2].io = 99; }},
    {"L13", 424, [](Builder& b) { b.refs[2].role = 1; }},
    {"L14", 424, [](Builder& b) { b.refs[2].origin = 0; }},
    {"L15", 309, [](Builder& b) { b.refs.clear(), b.refdata.clear(); }},
    {"L16", 424, [](Builder& b) { b.refs.resize(5), b.refdata.resize(b.refs[4].offset + 512); }},
    {"L17", 424, [](Builder& b) { b.refdata.clear(); }},
    {"L18", 424, [](Builder& b) { b.refs[2].reserved_38 = 1; }},
    {"L19", 424, [](Builder& b) { b.refs[2] = b.refs[1], b.refs[2].offset = 3584; }},
    {"L20", 424, [](Builder& b) { b.refdata.resize(b.refdata.size() + 256); }},
    {"L21", 310,
     [](Builder& b) {
       b.refs[2].compare = INGOT_COMPARE_COSINE;
       b.refs[2].rtol = 0;
       b.refs[2].min_cosine = 0.5f;
     }},
    {"N01", 401, [](Builder& b) { b.models[0].reserved[5] = 1; }},
    {"N02", 409, [](Builder& b) { b.models.assign(17, b.models[0]); }},
    {"N03", 0, [](Builder& b) { b.models.push_back(b.models[0]); }},
    {"N04", 409, [](Builder& b) { b.models[0].float_policy = 4; }},
    {"N05", 409, [](Builder& b) { b.models[0].opset = 0; }},
    {"N06", 409, [](Builder& b) { std::memset(b.models[0].onnx_sha256, 0, 32); }},
    {"N07", 409,
     [](Builder& b) {
       b.fix_model = false;
       b.models[0].onnx_sha256[0] = 1;
     }},
};

class Mutation : public testing::TestWithParam<SignedRow> {};

TEST_P(Mutation, gives_its_one_error) {
  Builder builder;
  GetParam().change(builder);
  const TestPolicy device;
  const Bytes file = builder.seal();
  ingot_error error;
  EXPECT_EQ(open_status(file, device.policy, &error), GetParam().expected)
      << GetParam().id << ": step " << error.step << " record " << error.record << " field "
      << error.field;
  // The same again: nothing was left behind that could change the answer.
  EXPECT_EQ(open_status(file, device.policy), GetParam().expected) << GetParam().id;
}

INSTANTIATE_TEST_SUITE_P(Signed, Mutation, testing::ValuesIn(kSignedRows), [](const auto& row) {
  std::string name = row.param.id;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
});

TEST(MutationRaw, container_and_damage) {
  const TestPolicy device;
  const Bytes good = Builder().seal();
  const std::uint64_t end = content_size(good);
  const auto status = [&](auto change) {
    Bytes file = good;
    change(file);
    return open_status(file, device.policy);
  };
  const auto resize = [](std::size_t size) { return [size](Bytes& f) { f.resize(size); }; };
  const auto flip = [](std::uint64_t at) { return [at](Bytes& f) { f[at] ^= 1; }; };
  EXPECT_EQ(status(resize(0)), 101u) << "A01";
  EXPECT_EQ(status(resize(543)), 101u) << "A02";
  EXPECT_EQ(status(resize(end - 1000)), 101u) << "A03";
  EXPECT_EQ(status(resize(end)), 101u) << "A04";
  EXPECT_EQ(status(resize(good.size() - 1)), 107u) << "A05";
  EXPECT_EQ(status(resize(good.size() + 1)), 107u) << "A06";
  EXPECT_EQ(status(resize(good.size() + 65536)), 107u) << "A07";
  EXPECT_EQ(status([](Bytes& f) { f.insert(f.begin(), 0x89); }), 103u) << "A08";
  EXPECT_EQ(status(flip(0)), 103u) << "A11";
  const auto header = [&](auto change) {
    return status([&](Bytes& f) {
      IngotHeader h;
      std::memcpy(&h, f.data(), sizeof h);
      change(h);
      std::memcpy(f.data(), &h, sizeof h);
      fix_header_digest(f);
    });
  };
  EXPECT_EQ(header([](auto& h) { h.version_major = 2; }), 104u) << "A12";
  EXPECT_EQ(header([](auto& h) { h.version_major = 0; }), 104u) << "A13";
  EXPECT_EQ(header([](auto& h) { h.header_size = 511; }), 105u) << "A14";
  EXPECT_EQ(header([](auto& h) { h.header_size = 1024; }), 105u) << "A15";
  EXPECT_EQ(header([](auto& h) { h.content_size = 0 - 256ull; }), 102u) << "A16";
  EXPECT_EQ(header([](auto& h) { ++h.content_size; }), 105u) << "A17";
  EXPECT_EQ(header([](auto& h) { h.content_size = 0; }), 105u) << "A18";
  EXPECT_EQ(header([](auto& h) { h.content_size += 256; }), 201u) << "A19";
  EXPECT_EQ(header([](auto& h) { h.content_size -= 256; }), 201u) << "A20";
  EXPECT_EQ(status(flip(0x50)), 106u) << "A21";
  EXPECT_EQ(status(flip(0x1E0)), 106u) << "A22";
  EXPECT_EQ(header([](auto& h) { ++h.security_counter; }), 204u) << "A23";
  EXPECT_EQ(header([](auto& h) { h.product[0] = 't'; }), 204u) << "A24";
  EXPECT_EQ(status(flip(512)), 108u) << "A25";
  EXPECT_EQ(status(flip(0x1000)), 108u) << "A26";
  EXPECT_EQ(status(flip(65535)), 108u) << "A27";
  EXPECT_EQ(status(flip(65536)), 109u) << "A28";
  EXPECT_EQ(status(flip(end - 1)), 109u) << "A29";
  EXPECT_EQ(status([](Bytes& f) {
              std::swap_ranges(f.begin() + 65536, f.begin() + 131072, f.begin() + 131072);
            }),
            109u)
      << "A30";
  TestPolicy limited;
  limited.policy.max_file_nbytes = good.size() - 1;
  EXPECT_EQ(open_status(good, limited.policy), 102u) << "A31";
  Bytes huge = good;
  const std::uint64_t above = INGOT_MAX_CONTENT + 256;
  std::memcpy(huge.data() + offsetof(IngotHeader, content_size), &above, sizeof above);
  fix_header_digest(huge);
  limited.policy.max_file_nbytes = ~std::uint64_t{0};
  EXPECT_EQ(open_status(huge, limited.policy), 102u) << "a caller cannot widen the limit";
}

TEST(MutationRaw, signature_block) {
  const Bytes good = Builder().seal();
  const std::uint64_t block = content_size(good);
  TestPolicy device;
  TestPolicy two;
  two.policy.threshold = 2;
  const auto status = [&](const TestPolicy& policy, auto change) {
    Bytes file = good;
    change(file.data() + block);
    return open_status(file, policy.policy);
  };
  const auto set32 = [](std::uint64_t at, std::uint32_t value) {
    return [=](std::uint8_t* b) { std::memcpy(b + at, &value, 4); };
  };
  const auto flip = [](std::uint64_t at) { return [=](std::uint8_t* b) { b[at] ^= 1; }; };
  EXPECT_EQ(status(device, flip(0)), 201u) << "B01";
  EXPECT_EQ(status(device, set32(12, 9)), 201u) << "B02";
  EXPECT_EQ(status(device, set32(12, 1)), 201u) << "B03";
  EXPECT_EQ(status(device, set32(12, 0)), 201u) << "B04";
  EXPECT_EQ(status(device, flip(20)), 201u) << "B05";
  EXPECT_EQ(status(device, set32(8, 32 + 3 * 128)), 107u) << "B06";
  Bytes stripped = good;
  stripped.resize(block + 32);
  const std::uint32_t none[2] = {32, 0};
  std::memcpy(stripped.data() + block + 8, none, 8);
  EXPECT_EQ(open_status(stripped, device.policy), 202u) << "B07";
  EXPECT_EQ(status(device, flip(32 + 64)), 204u) << "B08";
  EXPECT_EQ(status(device, flip(32 + 96)), 204u) << "B09";
  EXPECT_EQ(status(device, [](std::uint8_t* b) { std::memset(b + 96, 0, 64); }), 204u) << "B11";
  EXPECT_EQ(status(device, set32(32 + 8, 3)), 204u) << "B12";
  EXPECT_EQ(status(device, flip(32 + 32)), 204u) << "B13";
  EXPECT_EQ(status(device, set32(32 + 8, 0)), 201u) << "B14";
  EXPECT_EQ(status(device, set32(32 + 12, 1)), 201u) << "B15";
  EXPECT_EQ(status(device, set32(32 + 4, 64)), 201u) << "B16";
  EXPECT_EQ(status(device, set32(32 + 4, 256)), 201u) << "B17";
  EXPECT_EQ(status(device, set32(32 + 4, 0xFFFFFFC0u)), 201u) << "B18";
  EXPECT_EQ(status(device, set32(32, 2)), 0u) << "B19";
  EXPECT_EQ(status(two, set32(32, 2)), 205u) << "B20";
  EXPECT_EQ(status(device, [](std::uint8_t* b) { b[32] = b[160] = 0; }), 203u) << "B21";
  EXPECT_EQ(status(device, [](std::uint8_t* b) { b[48] ^= 1, b[176] ^= 1; }), 203u) << "B22";
  EXPECT_EQ(status(device, [](std::uint8_t* b) { std::swap_ranges(b + 48, b + 64, b + 176); }),
            204u)
      << "B23";
  EXPECT_EQ(status(two, [](std::uint8_t* b) { std::memcpy(b + 160, b + 32, 128); }), 207u) << "B24";
  EXPECT_EQ(status(device, set32(12, 3)), 201u) << "B33";
  EXPECT_EQ(status(two, [](std::uint8_t*) {}), 0u) << "two good signatures";
}

TEST(MutationRaw, keys_policy_and_detached_signatures) {
  Builder single;
  single.signatures = {{1}};
  const Bytes one = single.seal();
  TestPolicy two;
  two.policy.threshold = 2;
  EXPECT_EQ(open_status(one, two.policy), 205u) << "B27";
  TestPolicy revoked;
  revoked.keys[0].revoked = 1;
  EXPECT_EQ(open_status(one, revoked.policy), 206u) << "B28";
  TestPolicy ranged;
  ranged.keys[0].highest_counter = 6;
  EXPECT_EQ(open_status(one, ranged.policy), 205u) << "B29";
  TestPolicy weak;
  std::memset(weak.keys[1].public_key, 0, 32);
  weak.keys[1].public_key[0] = 1;
  EXPECT_EQ(open_status(one, weak.policy), 208u) << "B30";

  Bytes detached = detached_file(one, {{2}});
  const auto with = [&](TestPolicy& policy, const Bytes& signature) {
    policy.policy.detached = signature.data();
    policy.policy.detached_nbytes = signature.size();
    return open_status(one, policy.policy);
  };
  EXPECT_EQ(with(two, detached), 0u) << "B36";
  Builder other;
  other.header.security_counter = 8;
  EXPECT_EQ(with(two, detached_file(other.seal(), {{2}})), 209u) << "B35";
  EXPECT_EQ(with(two, Bytes(63)), 201u) << "B37";
  detached[8] ^= 1;
  EXPECT_EQ(with(two, detached), 201u) << "B38";

  TestPolicy purposes;
  purposes.policy.counted_purposes = 0;
  purposes.policy.required_purposes = (1u << INGOT_SIGN_RELEASE) | (1u << INGOT_SIGN_FLEET);
  EXPECT_EQ(open_status(one, purposes.policy), 205u);
  Builder both;
  both.signatures = {{1, INGOT_PURPOSE_RELEASE}, {2, INGOT_PURPOSE_FLEET}};
  EXPECT_EQ(open_status(both.seal(), purposes.policy), 0u);
  purposes.keys[1].purposes = 1u << INGOT_SIGN_RELEASE;
  EXPECT_EQ(open_status(both.seal(), purposes.policy), 205u);
}

TEST(MutationRaw, device_rules) {
  const Bytes good = Builder().seal();
  TestPolicy device;
  device.policy.lowest_counter = 8;
  EXPECT_EQ(open_status(good, device.policy), 305u) << "C01";
  TestPolicy deny;
  std::uint8_t ids[1][32];
  std::memcpy(ids[0], good.data() + INGOT_HEADER_DIGEST_OFFSET, 32);
  deny.policy.deny_ids = ids;
  deny.policy.deny_count = 1;
  EXPECT_EQ(open_status(good, deny.policy), 302u) << "C09";

  const TestPolicy usual;
  const auto on = [&](auto change, const Bytes& file) {
    ingot_host host = usual_host();
    change(host);
    ingot_load_options options{};
    options.host = &host;
    return open_status(file, usual.policy, nullptr, &options);
  };
  EXPECT_EQ(on([](auto& h) { h.arch = 9; }, good), 501u) << "G03";
  Builder needs_avx2;
  needs_avx2.variants[0].record.cpu_features[0] |= INGOT_X86_AVX2;
  EXPECT_EQ(on([](auto& h) { h.features[0] = 1; }, needs_avx2.seal()), 503u) << "G04";
  EXPECT_EQ(on([](auto& h) { h.xcr0 = 3; }, needs_avx2.seal()), 504u) << "G06";
  EXPECT_EQ(on([](auto& h) { h.page_size = 16384; }, good), 505u) << "G07";
  Builder needs_sve;
  needs_sve.variants[1].record.sve_bits = 512;
  EXPECT_EQ(on(
                [](auto& h) {
                  h.arch = 2;
                  h.features[0] = INGOT_AARCH64_ASIMD;
                  h.sve_bits = 256;
                },
                needs_sve.seal()),
            504u)
      << "G09";
  TestPolicy small;
  small.policy.max_arena_nbytes = 1024;
  EXPECT_EQ(open_status(good, small.policy), 306u) << "G19";
  TestPolicy pinned;
  const std::uint8_t other[32] = {1};
  pinned.policy.interface_sha256 = other;
  EXPECT_EQ(open_status(good, pinned.policy), 307u) << "G20";
  TestPolicy camera;
  ingot_layout layout = {32, 16, 64, 32, 16, 0, 2048};
  camera.policy.camera = "road";
  camera.policy.layouts = &layout;
  camera.policy.layout_count = 1;
  EXPECT_EQ(open_status(good, camera.policy), 0u) << "G22";
  layout.stride = 128;
  ingot_error error;
  EXPECT_EQ(open_status(good, camera.policy, &error), 308u) << "G23";
  EXPECT_EQ(error.layout_found[2], 128u);
  EXPECT_EQ(error.layout_allowed[2], 64u);
  layout.stride = 64;
  camera.policy.camera = "cabin";
  EXPECT_EQ(open_status(good, camera.policy), 308u) << "G24";
  // A stored name that ends in the middle and goes on: the caller's text ends there.
  Builder long_name;
  long_name.cameras[0].name.length = 9;
  const std::vector<char> text = {'r', 'o', 'a', 'd', 0};
  camera.policy.camera = text.data();
  EXPECT_EQ(open_status(long_name.seal(), camera.policy), 308u) << "read past the caller's text";
  char padded[16] = "road";
  camera.policy.camera = padded;
  EXPECT_EQ(open_status(long_name.seal(), camera.policy), 308u);
  TestPolicy period;
  period.policy.frame_period_us = 33333;
  EXPECT_EQ(open_status(good, period.policy), 307u);
  period.policy.frame_period_us = 50000;
  EXPECT_EQ(open_status(good, period.policy), 0u);
}

// Not a reason to look further, as an arena above the caller's limit is.
TEST(MutationDevice, an_oversized_camera_table_ends_the_search) {
  Builder builder;
  const IngotName name = builder.variants[1].record.name;
  builder.variants[1] = builder.variants[0];
  builder.variants[1].record.name = name;
  std::size_t count = 1;
  builder.on_sections = [&](std::vector<TestSection>& sections) {
    TestSection* camera = find(sections, INGOT_SECTION_CAMERA);
    camera->entry.variant = 1;
    TestSection copy = *camera;
    copy.entry.variant = 0;
    copy.bytes.resize(count * sizeof(IngotCameraRecord));
    copy.entry.entry_count = static_cast<std::uint32_t>(count);
    sections.push_back(copy);  // last, so that nobody's index changes
  };
  ingot_error error;
  const TestPolicy device;
  EXPECT_EQ(open_status(builder.seal(), device.policy, &error), 0u);
  count = INGOT_MAX_CAMERAS + 1;
  EXPECT_EQ(open_status(builder.seal(), device.policy, &error), 306u);
  EXPECT_EQ(error.step, 15u);
  EXPECT_EQ(error.variant, 0u);
}

TEST(Verify, a_bad_view_in_the_other_variant_is_found_by_the_tool_only) {
  Builder builder;
  builder.variants[1].views[1].flags = 1;
  const Bytes file = builder.seal();
  const TestPolicy device;
  EXPECT_EQ(open_status(file, device.policy), 0u);
  ingot_verdicts verdicts;
  EXPECT_EQ(ingot_verify_memory(file.data(), file.size(), &device.policy, nullptr, 0, &verdicts),
            418u);
  EXPECT_EQ(verdicts.origin.variant, 1u);
  EXPECT_EQ(verdicts.compatible_known, 0u);
}

}  // namespace
}  // namespace ingot::test
