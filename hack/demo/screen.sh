# shellcheck shell=bash
# What a demonstration prints.

bold='' dim='' green='' red='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
fi

seen=()   # the checks, as they are printed
failures=0

# title TEXT begins a part.
title() { printf '\n%s== %s%s\n' "$bold" "$1" "$plain"; }

# say LINE... explains what comes next.
say() {
  printf '\n'
  printf "$dim# %s$plain\n" "$@"
}

# show COMMAND prints a command line and runs it.
show() {
  printf '%s$ %s%s\n' "$bold" "$1" "$plain"
  eval "$1"
}

# check TEXT COMMAND... runs a command, and says whether it was so. What the
# command prints is shown only if it was not.
check() {
  local text=$1 output
  shift
  if output=$("$@" 2>&1); then
    seen+=("ok: $text")
    printf '%sok:%s %s\n' "$green" "$plain" "$text"
    return
  fi
  failures=$((failures + 1))
  seen+=("FAILED: $text")
  printf '%sFAILED:%s %s\n' "$red" "$plain" "$text"
  [[ -z $output ]] || printf '    %s\n' "${output//$'\n'/$'\n    '}"
}

# summary lists the checks, and fails if one of them did.
summary() {
  title "What was seen"
  printf '%s\n' "${seen[@]}"
  printf '\n%d checks, %d failed, %d s\n' ${#seen[@]} $failures $SECONDS
  ((failures == 0))
}

# is VALUE COMMAND... succeeds if the command prints the value.
is() {
  local want=$1 got
  shift
  got=$("$@") || return
  [[ $got == "$want" ]] || {
    printf 'got %q, want %q\n' "$got" "$want"
    return 1
  }
}
