# Completion of `fomoe` in bash: commands, options, topics of `list`, scenario keys after --set, --vary and --for.
#   source tools/fomoe-completion.bash
# Everything is asked of the program itself, so that nothing here can go stale.

_fomoe_commands() {
  "$1" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'
}

_fomoe_options() {
  "$1" $2 --help 2>/dev/null | sed -n 's/^  \(-[a-z] \[ \)\{0,1\}\(--[a-z-]*\).*/\2/p'
}

# The topics of `fomoe list`, from the line "Usage: fomoe list methods|models|…".
_fomoe_topics() {
  "$1" list --help 2>/dev/null | sed -n 's/^Usage: fomoe list \([^ ]*\).*/\1/p' | tr '|' ' '
}

# [table] and "key = value" lines become table.key.
_fomoe_keys() {
  "$1" list keys 2>/dev/null | sed '/^Platform file/,$d' |
    sed -n 's/^\[\(.*\)\]$/[\1/p; s/^\([a-z][a-z0-9_]*\) = .*/\1/p' |
    awk '/^\[/ { table = substr($0, 2) "."; next } { print table $0 }'
}

_fomoe() {
  # Of the line up to the cursor, so that "=" inside a word does not split it.
  local line=${COMP_LINE:0:COMP_POINT}
  local -a words
  read -r -a words <<<"$line"
  [[ $line == *" " ]] && words+=("")
  local program=${words[0]} command=${words[1]:-} last=$((${#words[@]} - 1))
  local current=${words[last]} previous=${words[last - 1]}
  COMPREPLY=()
  if ((last == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "$(_fomoe_commands "$program")" -- "$current")
  elif [[ $previous == --set || $previous == --vary || $previous == --for ]]; then
    [[ $current == *=* ]] && return
    mapfile -t COMPREPLY < <(compgen -W "$(_fomoe_keys "$program")" -- "$current")
    if [[ $previous != --for ]]; then
      compopt -o nospace 2>/dev/null
      COMPREPLY=("${COMPREPLY[@]/%/=}")
    fi
  elif [[ $previous == --engine || $previous == --sensitivity ]]; then
    mapfile -t COMPREPLY < <(compgen -W "simulated closed-form" -- "$current")
  elif [[ $previous == --minimise ]]; then
    mapfile -t COMPREPLY < <(compgen -W "time cost energy" -- "$current")
  elif [[ $command == profile && $last == 2 ]]; then
    mapfile -t COMPREPLY < <(compgen -W "import compose scale" -- "$current")
  elif [[ $command == profile && $previous == --from ]]; then
    mapfile -t COMPREPLY < <(compgen -W "torchtitan megatron nanotron kineto csv" -- "$current")
  elif [[ $command == profile && $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_fomoe_options "$program" "profile ${words[2]}")" -- "$current")
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_fomoe_options "$program" "$command")" -- "$current")
  elif [[ $command == list && $last == 2 ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_fomoe_topics "$program")" -- "$current")
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F _fomoe fomoe
