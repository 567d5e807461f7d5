# SPDX-License-Identifier: MIT
# names.sh STUB LIBTENURE: each name that the CUDA backend and the program's evaluator load is one that
# the Toolkit's stub library exports, and the library depends on nothing of CUDA. STUB is empty where there is none: skipped,
# or a failure with TN_REQUIRE_CUDA=1.
stub=${1:-}
library=${2:-}
root=$(dirname "$0")/../..
list="$root/src/driver/cuda/cuda_api.h $root/tools/tenure/cuda/device_api.h"

if [ -z "$stub" ]; then
    echo "the CUDA Toolkit, or its stub library, was not found"
    [ "${TN_REQUIRE_CUDA:-0}" = 1 ] && exit 1
    exit 77
fi
loaded=$(sed -n 's/^ *X(\(cu[A-Za-z0-9_]*\), [A-Z]*).*/\1/p' $list) # two words
exported=$(nm -D --defined-only "$stub" | sed -n 's/.* T //p') || exit 1
bad=0
count=0
for name in $loaded; do
    count=$((count + 1))
    if ! echo "$exported" | grep -qx "$name"; then
        echo "$stub has no $name"
        bad=1
    fi
done
if [ "$count" -ne "$(cat $list | grep -c '^ *X(cu')" ] || [ "$count" -lt 40 ]; then
    echo "only $count names were read from $list"
    bad=1
fi
needed=$(readelf -d "$library") || exit 1
if echo "$needed" | grep -qi 'NEEDED.*\[libcu'; then
    echo "$library depends on a CUDA library"
    bad=1
fi
echo "$count names looked up in $stub"
exit $bad
