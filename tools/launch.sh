# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# `run` of ./hakmem and of the installed command: its words, what stands in the way of a program's start, the preload.
# Before it is sourced: hm_name (what the user calls the command), and the functions
#   known_profiles   prints the names of the profiles
#   find_library P   sets hm_lib to the library for profile P, which may be empty
# and hm_docs, the folder of the pages, and hm_tools, that of the package hakmem_view

hm_reports="exit explain stats json map profile leaks off" # values of the option report

say() {
    printf 'hakmem: %s\n' "$*" >&2
}

die() { # STATUS MESSAGE
    hm_status=$1
    shift
    say "$@"
    exit "$hm_status"
}

# usage_of COMMAND: its part of what `usage` prints
usage_of() {
    hm_is_part=0
    usage | while IFS= read -r hm_line; do
        case $hm_line in
        "  $1" | "  $1 "*) hm_is_part=1 ;;
        "   "*) ;;
        *) hm_is_part=0 ;;
        esac
        [ "$hm_is_part" -eq 0 ] || printf '%s\n' "$hm_line"
    done
}

# cmd_help [COMMAND]: all of what `usage` prints, or the part of a command
cmd_help() {
    [ $# -ne 0 ] || { usage || exit; return; }
    case $1 in
    -h | --help) set -- help ;;
    esac
    hm_part=$(usage_of "$1")
    hm_names=$(usage | sed -n 's/^  \([a-z]\{1,\}\).*/\1/p')
    # shellcheck disable=SC2086 # a list of words
    [ -n "$hm_part" ] || die 2 "help: there is no command '$1'$(nearest "$1" $hm_names); $hm_name help lists them"
    printf '%s\n' "$hm_part"
}

# nearest WORD NAMES…: prints " (did you mean NAME?)" of the one that WORD begins, or that is two mistakes away at most and
# less than half of it; a mistake is a letter more, less or other, or two that changed places
nearest() {
    command -v awk >/dev/null || return 0
    awk 'function least(a, b) { return a < b ? a : b }
    function distance(a, b,    i, j, d, cost) {
        for (i = 0; i <= length(a); i++) d[i, 0] = i
        for (j = 0; j <= length(b); j++) d[0, j] = j
        for (i = 1; i <= length(a); i++) for (j = 1; j <= length(b); j++) {
            cost = substr(a, i, 1) != substr(b, j, 1)
            d[i, j] = least(least(d[i - 1, j], d[i, j - 1]) + 1, d[i - 1, j - 1] + cost)
            if (i > 1 && j > 1 && substr(a, i, 1) == substr(b, j - 1, 1) && substr(a, i - 1, 1) == substr(b, j, 1))
                d[i, j] = least(d[i, j], d[i - 2, j - 2] + 1)
        }
        return d[length(a), length(b)]
    }
    BEGIN {
        word = ARGV[1]
        most = least(2, int((length(word) - 1) / 2))
        for (at = 2; at < ARGC; at++) {
            far = length(word) > 1 && index(ARGV[at], word) == 1 ? 0 : distance(word, ARGV[at])
            if (far <= most) { most = far - 1; name = ARGV[at] }
        }
        if (name != "") printf " (did you mean %s?)", name
    }' "$@"
}

# unknown_command NAMES…: says that $hm_command is none of them
unknown_command() {
    die 2 "unknown command '$hm_command'$(nearest "$hm_command" "$@"); there are: $*"
}

# cmd_docs [PAGE]: the pages for users, or one of them; nothing but a shell is needed
cmd_docs() {
    [ $# -le 1 ] || die 2 "docs: one page at a time"
    case ${1-} in
    -h | --help) usage_of docs && exit ;;
    esac
    hm_docs=$(readlink -f "$hm_docs")
    if [ $# -eq 0 ]; then
        printf '%s\n\n' "$hm_docs"
        for hm_page in "$hm_docs"/*.md; do
            while IFS= read -r hm_line; do # generated pages begin with a comment
                case $hm_line in
                '# '*) break ;;
                esac
            done <"$hm_page"
            hm_page=${hm_page##*/}
            printf '  %-16s  %s\n' "${hm_page%.md}" "${hm_line#??}"
        done
        return
    fi
    hm_page=${1#docs/}
    hm_page=$hm_docs/${hm_page%.md}.md
    if [ ! -f "$hm_page" ]; then
        set -- "$1" "$hm_docs"/*.md
        hm_word=${1#docs/}
        hm_names=
        shift
        for hm_page; do
            hm_page=${hm_page##*/}
            hm_names="$hm_names ${hm_page%.md}"
        done
        # shellcheck disable=SC2086 # a list of words
        die 2 "docs: there is no page '$hm_word'$(nearest "${hm_word%.md}" $hm_names); $hm_name docs lists them"
    fi
    [ -t 1 ] || exec cat "$hm_page"
    show_page
    exit
}

# show_page: $hm_page for the terminal at standard output, by the user's pager; without Python its lines are only folded
show_page() {
    exec 3>&1 # within $() 1 is another
    hm_wide=$(stty size 2>/dev/null <&3) || hm_wide=
    exec 3>&-
    hm_wide=${hm_wide#* }
    [ "${hm_wide:-0}" -ge 40 ] || hm_wide=80
    hm_pager=${PAGER:-less}
    command -v "${hm_pager%% *}" >/dev/null || hm_pager="cat"
    hm_bold=0
    case $hm_pager in
    less | cat) [ -n "${NO_COLOR-}" ] || [ "${TERM:-dumb}" = dumb ] || hm_bold=1 ;; # others may show their signs
    esac
    hm_text=$(python3 -B -c 'import sys; sys.path.insert(0, sys.argv[1]); from hakmem_view import docs_page; docs_page.main(sys.argv[2:])' \
        "$hm_tools" "$hm_page" "$hm_wide" "$hm_name" "$hm_bold" 2>/dev/null) || hm_text=$(fold -s -w "$hm_wide" "$hm_page")
    printf '%s\n' "$hm_text" | LESS="-R ${LESS-}" sh -c "$hm_pager"
}

# add_options TEXT: behind those that the environment has
add_options() {
    HAKMEM_OPTIONS=${HAKMEM_OPTIONS:+$HAKMEM_OPTIONS,}$1
    export HAKMEM_OPTIONS
}

# LD_PRELOAD is split at spaces and colons; a folder with a space goes into LD_LIBRARY_PATH instead.
preload() {
    hm_entry=$hm_lib
    case $hm_lib in
    *:* | *\;*) die 1 "a path with ':' or ';' cannot be preloaded: $hm_lib" ;;
    *[[:space:]]*)
        hm_entry=${hm_lib##*/}
        case $hm_entry in
        *[[:space:]]*) die 1 "a file name with a space cannot be preloaded: $hm_lib" ;;
        esac
        LD_LIBRARY_PATH=${hm_lib%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        export LD_LIBRARY_PATH
        ;;
    esac
    case $(getconf GNU_LIBC_VERSION 2>/dev/null) in
    'glibc 2.'[0-9] | 'glibc 2.'[12][0-9] | 'glibc 2.3'[0-3]) # threads and dlsym are in libraries that not all programs have
        hm_entry=$hm_entry:libpthread.so.0:libdl.so.2
        ;;
    esac
    LD_PRELOAD=$hm_entry${LD_PRELOAD:+:$LD_PRELOAD}
    export LD_PRELOAD
}

choose_profile() { # NAME
    [ "$1" != "${HAKMEM_PROFILE-}" ] || return 0
    hm_known=$(known_profiles | tr '\n' ' ')
    case " $hm_known" in
    *" $1 "*) export HAKMEM_PROFILE="$1" ;;
    *)
        # shellcheck disable=SC2086 # a list of words
        die 2 "run: unknown profile '$1'$(nearest "$1" $hm_known); there are: ${hm_known% }"
        ;;
    esac
}

# choose_report KIND: one that the library writes; another is refused before the program runs
choose_report() {
    for hm_word in $hm_reports; do
        [ "$hm_word" != "$1" ] || { hm_report=$1 && return; }
    done
    # shellcheck disable=SC2086 # a list of words
    die 2 "run: unknown report '$1'$(nearest "$1" $hm_reports); there are: $hm_reports"
}

cmd_run() {
    hm_lib=
    hm_profile=${HAKMEM_PROFILE-}
    hm_added=
    hm_report=
    hm_strict=0
    while [ $# -gt 0 ]; do
        case $1 in
        --profile | --lib | --options | --report)
            case ${2:--} in
            -*) die 2 "run: $1 needs a value" ;;
            esac
            ;;
        esac
        case $1 in
        --profile) hm_profile=$2 && shift 2 ;;
        --lib) hm_lib=$2 && shift 2 ;;
        --options) hm_added=$hm_added,$2 && shift 2 ;;
        --profile=*) hm_profile=${1#*=} && shift ;;
        --lib=*) hm_lib=${1#*=} && shift ;;
        --options=*) hm_added=$hm_added,${1#*=} && shift ;;
        --strict) hm_strict=1 && shift ;;
        --strict=[01]) hm_strict=${1#*=} && shift ;;
        --report)
            choose_report "$2"
            hm_file=
            case ${3:--} in
            -*) ;;
            *) # a word between it and "--" or another option of ours
                case ${4-} in
                -- | --strict | --report | --report=* | --options* | --profile* | --lib*) hm_file=$3 ;;
                esac
                ;;
            esac
            shift 2
            [ -z "$hm_file" ] || { hm_added=$hm_added,report:$hm_report,report_file:$hm_file && hm_report= && shift; }
            ;;
        --report=*) choose_report "${1#*=}" && shift ;;
        --) shift && break ;;
        -h | --help) usage_of run && exit ;;
        -*) die 2 "run: unknown option '$1'$(nearest "${1%%=*}" --profile --lib --options --report --strict); there are: --profile P, --lib PATH, --options TEXT," \
            "--report X [FILE], --strict, --" ;;
        *) break ;;
        esac
    done
    [ $# -gt 0 ] || die 2 "run: no program given; usage: $hm_name run [--profile P] -- PROGRAM ARGS..."
    check_program "$1"
    [ -z "$hm_report" ] || one_report "$@"
    choose_profile "$hm_profile"
    if [ -n "$hm_lib" ]; then
        [ -f "$hm_lib" ] || die 2 "run: no library at: $hm_lib"
        hm_lib=$(CDPATH='' cd -P "$(dirname "$hm_lib")" && pwd -P)/$(basename "$hm_lib")
    else
        find_library "$hm_profile"
    fi
    if ! fits; then
        [ "$hm_strict" -eq 0 ] || die 126 "run: $hm_misfit"
        say "run: $hm_misfit; it runs as it is, and what it starts on hakmem where that can be"
    fi
    [ -z "$hm_added" ] || add_options "${hm_added#,}"
    preload
    exec "$@"
}

# one_report PROGRAM ARGS…: of a shell that starts a program each would report: Python, where it is, shows one of them
one_report() {
    hm_added=$hm_added,report:$hm_report
    case ,${HAKMEM_OPTIONS-}$hm_added in
    *,report_file[:=]* | *,only[:=]*) return 0 ;; # the user says which
    esac
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || return 0
    hm_more=${hm_added%",report:$hm_report"}
    exec python3 -B -c 'import sys; sys.path.insert(0, sys.argv[1]); from hakmem_view import own_program; own_program.report(sys.argv[2:])' \
        "$hm_tools" "$hm_report" ${hm_profile:+"--profile=$hm_profile"} ${hm_lib:+"--lib=$hm_lib"} ${hm_more:+"--options=${hm_more#,}"} \
        "--strict=$hm_strict" -- "$@"
}

# check_program NAME: what `exec` would not start is told in one line, with the status that shells give
check_program() {
    hm_problem="there is no program '$1'"
    case $1 in
    '') ;;
    */*) check_file "$1" && return ;;
    *)
        hm_rest=${PATH-/usr/bin:/bin}:
        while [ -n "$hm_rest" ]; do
            hm_folder=${hm_rest%%:*}
            hm_rest=${hm_rest#*:}
            check_file "${hm_folder:-.}/$1" && return
        done
        ;;
    esac
    case $hm_problem in
    there*) die 127 "run: $hm_problem" ;;
    *) die 126 "run: $hm_problem" ;;
    esac
}

# check_file PATH: whether it can be started; if something is there that cannot, $hm_problem says so
check_file() {
    if [ -f "$1" ] && [ -x "$1" ]; then
        hm_program=$1
        check_interpreter "$1"
        return 0
    elif [ -d "$1" ]; then
        hm_problem="$1 is a folder"
    elif [ -e "$1" ]; then
        hm_problem="$1 may not be executed"
    fi
    return 1
}

# check_interpreter PATH: of a script
check_interpreter() {
    [ "$({ head -c 2 "$1" | tr -d '\0'; } 2>/dev/null)" = '#!' ] || return 0
    read -r hm_first <"$1" || return 0
    hm_first=${hm_first#??}
    # shellcheck disable=SC2086 # a list of words
    set -f -- "$1" $hm_first
    set +f
    [ $# -ge 2 ] || return 0
    [ -x "$2" ] || die 127 "run: the interpreter of $1 is not there: $2"
    hm_program=$2
    [ "${2##*/}" = env ] || return 0
    shift 2
    while :; do
        case ${1-} in
        -* | *=*) shift ;; # its options and settings
        *) break ;;
        esac
    done
    hm_found=$(command -v -- "${1-}") || return 0 # which env itself tells
    [ ! -f "$hm_found" ] || hm_program=$hm_found
}

# fits: whether $hm_lib can be preloaded into $hm_program, as far as is known; else $hm_misfit says why not
fits() {
    hm_kind=$(elf_kind "$hm_program")
    hm_lib_kind=$(elf_kind "$hm_lib")
    hm_misfit=
    case ${hm_program##*/} in
    ld-linux* | ld-musl* | ld.so* | ld64*) return 0 ;; # a loader has none, and loads a program
    esac
    if has_capabilities "$hm_program"; then
        hm_misfit="$hm_program has file capabilities (setcap), so the system preloads nothing into it"
    elif [ ! -r "$hm_program" ]; then
        hm_misfit="$hm_program may not be read, so nobody knows whether the library can be loaded into it"
    elif [ -z "$hm_kind" ] || [ -z "$hm_lib_kind" ]; then
        return 0 # not known
    elif [ "$hm_kind" != "$hm_lib_kind" ]; then
        hm_misfit="$hm_program is a program for $hm_kind, and the library for $hm_lib_kind"
    elif { [ -u "$hm_program" ] && [ ! -O "$hm_program" ]; } || { [ -g "$hm_program" ] && [ ! -G "$hm_program" ]; }; then
        hm_misfit="$hm_program changes its user or group, so the system preloads nothing into it"
    elif ! has_loader "$hm_program"; then
        hm_misfit="$hm_program is linked statically, so nothing can be preloaded into it"
    fi
    [ -z "$hm_misfit" ]
}

# has_capabilities FILE: whether it has any, which all but root get; no, where no tool tells
has_capabilities() {
    [ "$(id -u 2>/dev/null)" != 0 ] || return 1
    for hm_word in getcap /usr/sbin/getcap /sbin/getcap; do # the folders are not in everybody's PATH
        if command -v "$hm_word" >/dev/null; then
            [ -n "$("$hm_word" "$1" 2>/dev/null)" ]
            return
        fi
    done
    python3 -ISc 'import os, sys; os.getxattr(sys.argv[1], "security.capability")' "$1" >/dev/null 2>&1
}

# elf_kind FILE: its architecture and word size in words; nothing: it is no ELF file
elf_kind() {
    # shellcheck disable=SC2046 # a list of numbers
    set -- $(od -An -v -tu1 -N20 "$1" 2>/dev/null)
    [ $# -eq 20 ] && [ "$1 $2 $3 $4" = "127 69 76 70" ] || return 0
    shift 4
    hm_bits=$(($1 * 32))
    hm_machine=$((${15} + ${16} * 256))
    [ "$2" -eq 1 ] || hm_machine=$((${15} * 256 + ${16})) # the highest byte first
    case $hm_machine in
    3) hm_machine=i386 ;;
    40) hm_machine=arm ;;
    62) hm_machine=x86-64 ;;
    183) hm_machine=aarch64 ;;
    243) hm_machine=riscv ;;
    *) hm_machine="architecture $hm_machine" ;;
    esac
    echo "$hm_machine ($hm_bits bits)"
}

# has_loader FILE: whether an ELF file of this machine's kind names a loader, as all but static programs do
has_loader() {
    # shellcheck disable=SC2046 # a list of numbers
    set -- "$1" $({ od -An -v -tu8 -j32 -N8 "$1" && od -An -v -tu2 -j54 -N4 "$1"; } 2>/dev/null)
    [ $# -eq 4 ] && [ "$3" -eq 56 ] || return 0
    # shellcheck disable=SC2046
    set -- $(od -An -v -tu4 -j"$2" -N$(($4 * 56)) "$1" 2>/dev/null)
    [ $# -ne 0 ] || return 0
    while [ $# -ge 14 ]; do
        [ "$1" -ne 3 ] || return 0
        shift 14
    done
    return 1
}
