// lld in process, behind one mutex: it keeps its state in globals. The script lays out code and
// constants from address 0 and puts the tables of the dynamic linker last, where they are cut off.
#include "codegen/link_blob.h"

#include <elf.h>
#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string_view>

LLD_HAS_DRIVER(elf)

namespace ingot {
namespace {

constexpr const char* kScript = R"(SECTIONS {
  . = 0;
  .text : { *(.text .text.*) }
  . = ALIGN(64);
  .rodata : { *(.rodata .rodata.*) }
  .dynsym : { *(.dynsym) }
  .gnu.hash : { *(.gnu.hash) }
  .hash : { *(.hash) }
  .dynstr : { *(.dynstr) }
  .rela.dyn : { *(.rela.dyn) }
  .dynamic : { *(.dynamic) }
  .symtab : { *(.symtab) }
  .shstrtab : { *(.shstrtab) }
  .strtab : { *(.strtab) }
  /DISCARD/ : { *(.comment) *(.note.*) *(.eh_frame) *(.stack_sizes) *(.llvm_addrsig) }
}
ASSERT(SIZEOF(.rela.dyn) == 0, "code needs relocations")
)";

std::unexpected<Failure> link_failure(std::string code, std::string message) {
  return fail(ExitCode::Internal, std::move(code), std::move(message));
}

// Keeps signals that end the process waiting while it lives, so that the folder below is removed.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// A folder only for this user, removed with everything in it.
class PrivateFolder {
 public:
  PrivateFolder() {
    const char* const parent = std::getenv("TMPDIR");
    path_ = std::string(parent != nullptr && *parent != 0 ? parent : "/tmp") + "/ingot-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Result<std::vector<std::byte>> read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) return fail(ExitCode::Io, "cannot-read", "cannot read the linked code");
  std::vector<std::byte> bytes(static_cast<std::size_t>(stream.tellg()));
  stream.seekg(0);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!stream) return fail(ExitCode::Io, "cannot-read", "cannot read the linked code");
  return bytes;
}

bool write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  stream.close();
  return !stream.fail();
}

// What lld writes goes through a mapping, where a full disk is a signal and not an error. So the
// space must be there before.
Result<void> check_space(const std::string& folder, std::uint64_t size) {
  const std::string path = folder + "/space";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const int error = fd < 0 ? errno : posix_fallocate(fd, 0, static_cast<off_t>(size));
  if (fd >= 0) close(fd);
  unlink(path.c_str());
  if (error == 0) return {};
  return fail(ExitCode::Io, "cannot-write", "no space in '" + folder + "': " + std::strerror(error),
              {}, "set TMPDIR to a folder with free space");
}

// More than the linked file ever takes.
std::uint64_t most_linked_bytes(std::span<const CompiledObject> objects) {
  std::uint64_t size = std::uint64_t{1} << 20;
  for (const CompiledObject& object : objects) size += object.elf.size() + 256;
  return size;
}

// lld says only by its text that a file could not be written.
std::unexpected<Failure> lld_failure(const std::string& messages) {
  const std::string first = messages.substr(0, messages.find('\n'));
  for (const int error : {EFBIG, ENOSPC, EDQUOT, EIO, ENOMEM, EACCES, EMFILE}) {
    if (first.find(std::strerror(error)) == std::string::npos) continue;
    return fail(ExitCode::Io, "cannot-write", first, {}, "set TMPDIR to a folder with free space");
  }
  return link_failure("cannot-link", first);
}

Result<std::vector<std::byte>> run_lld(std::span<const CompiledObject> objects) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const SignalsHeld held;
  const PrivateFolder folder;
  if (folder.path().empty()) {
    return fail(ExitCode::Io, "no-temporary-folder", "cannot make a temporary folder", {},
                "set TMPDIR to a folder that may be written");
  }
  // As files rather than open descriptors: there may be thousands of kernels.
  const std::string script = folder.path() + "/script.ld";
  std::vector<std::string> files;
  bool complete = write_file(script, std::as_bytes(std::span(std::string_view(kScript))));
  for (const CompiledObject& object : objects) {
    files.push_back(folder.path() + "/" + std::to_string(files.size()) + ".o");
    complete = complete && write_file(files.back(), object.elf);
  }
  if (!complete) {
    return fail(ExitCode::Io, "cannot-write", "cannot write to '" + folder.path() + "'", {},
                "set TMPDIR to a folder with free space");
  }
  INGOT_RETURN_IF_ERROR(check_space(folder.path(), most_linked_bytes(objects)));

  const std::string output = folder.path() + "/blob.so";
  std::vector<std::string> arguments = {"ld.lld",
                                        "-shared",
                                        "-T",
                                        script,
                                        "--no-undefined",
                                        "-z",
                                        "text",
                                        "-z",
                                        "norelro",
                                        "--build-id=none",
                                        "--hash-style=sysv",
                                        "--orphan-handling=error",
                                        "--threads=1",
                                        "-o",
                                        output};
  arguments.insert(arguments.end(), files.begin(), files.end());
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const lld::Result result = lld::lldMain(pointers, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0 || !result.canRunAgain) {
    return lld_failure(messages);
  }
  return read_file(output);
}

// Reads of the file, each checked against its size.
class ElfView {
 public:
  explicit ElfView(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename Record>
  [[nodiscard]] bool read(std::uint64_t offset, Record& record) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof record) return false;
    std::memcpy(&record, bytes_.data() + offset, sizeof record);
    return true;
  }
  [[nodiscard]] std::string text(std::uint64_t offset) const {
    std::string result;
    for (; offset < bytes_.size() && bytes_[offset] != std::byte{0}; ++offset) {
      result += static_cast<char>(bytes_[offset]);
    }
    return result;
  }

 private:
  std::span<const std::byte> bytes_;
};

bool is_relocation_table(const Elf64_Shdr& section) {
  return section.sh_type == SHT_REL || section.sh_type == SHT_RELA || section.sh_type == SHT_RELR;
}

}  // namespace

Result<CodeBlob> link_blob(std::span<const CompiledObject> objects) {
  if (objects.empty()) return CodeBlob{};
  INGOT_ASSIGN(const std::vector<std::byte> linked, run_lld(objects));
  return flatten_linked(linked, objects);
}

Result<CodeBlob> flatten_linked(std::span<const std::byte> elf,
                                std::span<const CompiledObject> objects) {
  const ElfView view(elf);
  const auto malformed = [] {
    return link_failure("malformed-link", "the linked file is cut off");
  };
  Elf64_Ehdr header;
  if (!view.read(0, header)) return malformed();
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (!view.read(header.e_shoff + i * sizeof(Elf64_Shdr), sections[i])) return malformed();
  }
  if (header.e_shstrndx >= sections.size()) return malformed();

  CodeBlob blob;
  std::uint64_t text_size = 0;
  const auto name_of = [&](const Elf64_Shdr& section) {
    return view.text(sections[header.e_shstrndx].sh_offset + section.sh_name);
  };
  for (const Elf64_Shdr& section : sections) {
    const std::string name = name_of(section);
    if (is_relocation_table(section) && section.sh_size != 0) {
      return link_failure("code-has-relocations",
                          "section " + name + " of the linked code is not empty");
    }
    if ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_size == 0) continue;
    if ((section.sh_flags & SHF_WRITE) != 0 && section.sh_type != SHT_DYNAMIC) {
      return link_failure("code-is-writable",
                          "section " + name + " of the linked code is writable");
    }
    if ((section.sh_flags & SHF_TLS) != 0 || section.sh_type == SHT_INIT_ARRAY ||
        section.sh_type == SHT_FINI_ARRAY) {
      return link_failure("code-needs-set-up", "section " + name + " of the linked code");
    }
    if (name != ".text" && name != ".rodata") continue;
    const std::uint64_t end = section.sh_addr + section.sh_size;
    if (section.sh_type != SHT_PROGBITS || section.sh_offset > elf.size() ||
        elf.size() - section.sh_offset < section.sh_size || section.sh_addr > elf.size()) {
      return malformed();
    }
    if (name == ".text") text_size = end;
    if (blob.bytes.size() < end) blob.bytes.resize(end);
    std::memcpy(blob.bytes.data() + section.sh_addr, elf.data() + section.sh_offset,
                section.sh_size);
  }

  std::map<std::string, Elf64_Sym> functions;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    if (section.sh_link >= sections.size()) return malformed();
    const std::uint64_t names = sections[section.sh_link].sh_offset;
    for (std::uint64_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= section.sh_size;
         at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      if (!view.read(section.sh_offset + at, symbol)) return malformed();
      const std::string name = view.text(names + symbol.st_name);
      if (symbol.st_shndx == SHN_UNDEF) {
        return link_failure("code-calls-library",
                            "the linked code needs the symbol '" + name + "'");
      }
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) functions[name] = symbol;
    }
  }
  for (const CompiledObject& object : objects) {
    const auto found = functions.find(object.symbol);
    if (found == functions.end() || found->second.st_value > text_size ||
        text_size - found->second.st_value < found->second.st_size) {
      return link_failure("missing-program", "the linked code lacks '" + object.symbol + "'");
    }
    blob.entries.push_back({found->second.st_value, found->second.st_size, object.stack_bytes});
  }
  if (functions.size() != objects.size()) {
    return link_failure("unknown-program", "the linked code has functions that nobody asked for");
  }
  return blob;
}

}  // namespace ingot
