#!/bin/sh
# Prints the text size of the loader linked as one object, and what it needs from outside.
#   loader/size_report.sh LIBINGOT_LOADER.a [COMPILER] [LIMIT_BYTES]
# Fails if the text is above the limit or if anything but libc is needed.
set -eu
archive=$1
compiler=${2:-c++}
limit=${3:-65536}
prefix=$("$compiler" -dumpmachine 2>/dev/null || true)
tool() { # the compiler's own binutils where they exist
  if command -v "$prefix-$1" >/dev/null 2>&1; then echo "$prefix-$1"; else echo "$1"; fi
}
object=$(mktemp)
trap 'rm -f "$object"' EXIT
"$compiler" -r -nostdlib -o "$object" -Wl,--whole-archive "$archive" -Wl,--no-whole-archive
text=$("$(tool size)" "$object" | awk 'NR == 2 { print $1 }')
undefined=$("$(tool nm)" -u "$object" | awk '{ print $NF }' | sort -u)
echo "text $text bytes, limit $limit"
echo "undefined:" $undefined
status=0
if [ "$text" -gt "$limit" ]; then
  echo "above the limit" >&2
  status=1
fi
for symbol in $undefined; do
  case $symbol in
    _Z* | __cxa* | __gxx* | _Unwind*)
      echo "needs the C++ runtime: $symbol" >&2
      status=1 ;;
  esac
done
exit $status
