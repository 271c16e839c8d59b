# The Debian packages of each purpose, and how they get here. Sourced by ./dev.
# An entry "package:command" is content with any provider of that command, since Node and Python
# often come from elsewhere.

DEPS_RUN=(gcc libc6-dev cmake ninja-build pkg-config
    libuv1-dev libssl-dev libnghttp2-dev libpcre2-dev libyaml-dev libsqlite3-dev ca-certificates)
DEPS_TEST=(clang clang-format cppcheck libclang-rt-14-dev libcmocka-dev libglib2.0-dev libhttp-parser-dev
    json-schema-test-suite g++ git curl openssl make dpkg-dev fakeroot file man-db bubblewrap:bwrap python3:python3 nodejs:node npm:npm)

# Prints the packages of the arguments that are not here.
deps_missing() {
    local entry packages=()
    for entry in "$@"; do
        case $entry in
        *:*) command -v "${entry#*:}" >/dev/null 2>&1 || printf '%s\n' "${entry%%:*}" ;;
        *) packages+=("$entry") ;;
        esac
    done
    local installed
    [ ${#packages[@]} -gt 0 ] || return 0
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null |
        sed -n 's/^installed //p') || true # it fails when it does not know one of them
    for entry in "${packages[@]}"; do
        grep -qxF -- "$entry" <<<"$installed" || printf '%s\n' "$entry"
    done
}

# deps_install PACKAGE…: installs what is missing; silent and quick when nothing is.
deps_install() {
    local missing
    if ! command -v dpkg-query >/dev/null 2>&1; then
        say "not a Debian system: please provide what these packages hold: ${*%%:*}"
        return 0
    fi
    mapfile -t missing < <(deps_missing "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${missing[*]}"
    local as_root=(env DEBIAN_FRONTEND=noninteractive)
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null 2>&1 ||
            die "packages are missing, and neither root nor sudo is at hand; as root: apt-get install ${missing[*]}"
        as_root=(sudo "${as_root[@]}")
    fi
    local log
    log=$(mktemp)
    if ! { "${as_root[@]}" apt-get update -q && "${as_root[@]}" apt-get install -y -q \
        --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        die "apt-get could not install ${missing[*]}"
    fi
    rm -f "$log"
}

# deps run|test
deps() {
    case $1 in
    run) deps_install "${DEPS_RUN[@]}" ;;
    test) deps_install "${DEPS_RUN[@]}" "${DEPS_TEST[@]}" ;;
    *) die "deps: '$1' is neither run nor test" ;;
    esac
}
