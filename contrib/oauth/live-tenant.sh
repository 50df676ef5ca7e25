#!/bin/sh
# Checks a relay that logs in with access tokens against a live tenant of Microsoft 365 or Google: takes the steps of docs/microsoft-365.md with the
# configuration of this machine, sends one mail, waits for its outcome, and prints a report without secrets and tokens. The daemon has to run.
#
# usage: live-tenant.sh --oauth NAME --from MAILBOX --to ADDRESS [--config FILE] [--wait SECONDS] [--notice] [--dry-run]
#
#   --oauth    name of the [oauth.NAME] table
#   --from     mailbox of the login, which is the sender of the mail
#   --to       recipient
#   --config   configuration file; that of deferd when absent
#   --wait     seconds to wait for the outcome of a mail; 120 when absent
#   --notice   also sends a mail with the null sender, as notices have it
#   --dry-run  prints the commands and runs none
#
# $DEFERD is the program; deferd when empty. Exit code: 0 when all steps have succeeded, 1 when one has failed, 64 for wrong usage.
set -u

usage() {
  printf 'live-tenant.sh: %s\n' "$1" >&2
  sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2
  exit 64
}

oauth='' from='' to='' wait=120 notice=no dry=no
while [ $# -gt 0 ]; do
  case $1 in
    --notice) notice=yes; shift; continue ;;
    --dry-run) dry=yes; shift; continue ;;
    --oauth | --from | --to | --config | --wait) [ $# -gt 1 ] || usage "$1 needs a value" ;;
    *) usage "unknown argument $1" ;;
  esac
  case $1 in
    --oauth) oauth=$2 ;;
    --from) from=$2 ;;
    --to) to=$2 ;;
    --config) DEFERD_CONFIG=$2; export DEFERD_CONFIG ;;
    --wait) wait=$2 ;;
  esac
  shift 2
done
[ -n "$oauth" ] && [ -n "$from" ] && [ -n "$to" ] || usage '--oauth, --from and --to are needed'
case $wait in '' | *[!0-9]*) usage "--wait $wait is no number of seconds" ;; esac
deferd=${DEFERD:-deferd}
failed=''

# Replaces what looks like an access token of Microsoft (a JWT) or Google. deferd prints none; this is the second lock.
masked() {
  sed -E 's/eyJ[A-Za-z0-9_=-]+\.[A-Za-z0-9_.=-]+/****/g; s/ya29\.[A-Za-z0-9_.-]+/****/g'
}

# Runs a step: its name, then the command.
step() {
  name=$1
  shift
  printf '\n## %s\n\n    %s\n\n' "$name" "$*"
  [ $dry = no ] || return 0
  out=$("$@" 2>&1)
  code=$?
  printf '%s\n' "$out" | masked
  [ $code -eq 0 ] || { failed="$failed, $name"; printf '\n(exit code %s)\n' $code; }
}

# Sends a mail from an envelope sender, and waits for its outcome.
send() {
  name=$1 sender=$2
  printf '\n## %s\n\n    %s sendmail -v -f %s %s\n\n' "$name" "$deferd" "'$sender'" "$to"
  [ $dry = no ] || return 0
  sent=$(printf 'From: %s\nTo: %s\nSubject: deferd: %s\n\nSent by contrib/oauth/live-tenant.sh.\n' "$from" "$to" "$name" |
    "$deferd" sendmail -v -f "$sender" "$to" 2>&1)
  printf '%s\n' "$sent" | masked
  id=$(printf '%s\n' "$sent" | sed -n 's/.*queued as \([A-Za-z0-9]*\).*/\1/p' | head -n 1)
  [ -n "$id" ] || { failed="$failed, $name"; return 0; }
  ends=$(($(date +%s) + wait))
  while :; do
    line=$("$deferd" history list --since 1h --tsv 2>&1 | grep -F "	$id	")
    [ -z "$line" ] && [ "$(date +%s)" -lt $ends ] || break
    sleep 2
  done
  case $line in
    *"	delivered	"*) printf '%s\n' "$line" | masked ;;
    *)
      failed="$failed, $name"
      "$deferd" queue show "$id" 2>&1 | masked
      ;;
  esac
}

printf '# deferd and OAuth at a live tenant\n\n%s, %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$(uname -srm)"
step 'version' "$deferd" --version
step 'table' "$deferd" oauth show "$oauth"
step 'token and login' "$deferd" oauth test "$oauth" "$from"
step 'check' "$deferd" check --connect
send 'first mail' "$from"
[ $notice = no ] || send 'null sender' '<>'
step 'tokens' "$deferd" oauth list

[ $dry = no ] || exit 0
if [ -n "$failed" ]; then
  printf '\n# FAILED: %s\n\nTo look for: the first error above, in the tables "Errors and cures" of docs/microsoft-365.md or docs/google.md.\n' "${failed#, }"
  exit 1
fi
printf '\n# All steps have succeeded.\n'
printf '\nTo look for: the mail at %s, From: %s, in the inbox and not in the spam folder; its copy in the sent mail of the mailbox.\n' "$to" "$from"
