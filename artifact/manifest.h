// The MANIFEST section: the interesting facts of the tables, as canonical JSON, for people and
// tools. The loader never reads it.
//
// Canonical: sorted keys, no spaces, integers only; a real number is a string of 17 digits.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/contents.h"
#include "artifact/digest.h"
#include "artifact/tables.h"
#include "base/result.h"

namespace ingot::artifact {

// Text of the manifest. `section_digests` is parallel to tables.sections; the manifest's own row is
// not looked at. `cut_names` maps stored names to originals that cannot be read back from them.
[[nodiscard]] std::string write_manifest(const Tables& tables,
                                         const std::vector<Digest>& section_digests,
                                         const ManifestFacts& facts,
                                         const std::map<std::string, std::string>& cut_names);

// E_MANIFEST unless `text` is canonical and says about the tables what they say themselves.
[[nodiscard]] Result<void> check_manifest(std::string_view text, const Tables& tables,
                                          const std::vector<Digest>& section_digests);

}  // namespace ingot::artifact
