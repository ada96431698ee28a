#!/bin/sh
# Sees to it that the system's Chromium is there, for make browser: installs Debian's where it is missing and root may.
set -u
for name in chromium chromium-browser; do
    command -v "$name" >/dev/null && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing chromium (once; about a minute)"
    { timeout 120 apt-get update -qq && DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -y -qq \
        --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1
    command -v chromium >/dev/null && exit 0
    echo "mcplab: make browser needs Chromium, and apt-get install chromium failed here; install it by hand" >&2
else
    echo "mcplab: make browser needs Chromium; on Debian, as root: apt-get install chromium" >&2
fi
exit 1
