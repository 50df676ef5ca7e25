#!/bin/sh
# Runs a tier of the tests (test/tiers.ts), such as `sh scripts/test.sh fast [FILE…]`, and prints the time of processors that it took.
tier=$1
shift
vitest run --project "$tier" "$@"
status=$?
echo 'User and system time of this script, then of the tests:'
times
exit $status
