# ./dev fresh: the README's two commands in a Debian that has nothing. Sourced by ./dev.
#
# The new system is given what makes this machine's network usable and nothing else: the Debian
# mirror that apt uses here, apt's and the environment's proxies, locally trusted certificates, the
# npm registry's address. No password or token goes in. It lives in its own mount and process name
# spaces, so that everything in it ends with this command.

FRESH_SUITE=bookworm
FRESH_ADDRESS=127.0.0.1:8930
fresh_folder=
fresh_gateway=

# Prints "URI SUITE" for each Debian entry of apt's sources, either format.
fresh_sources() {
    local file
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$file" ] || continue
        sed -nE 's/^deb +(\[[^]]*\] +)?([^ ]+) +([^ ]+) .*\bmain\b.*/\2 \3/p' "$file"
    done
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] || continue
        awk 'function flush(   i, n, list) {
                if (components ~ /(^| )main( |$)/) {
                    n = split(suites, list, " ")
                    for (i = 1; i <= n; i++) print uri, list[i]
                }
                uri = suites = components = ""
            }
            /^[[:space:]]*$/ { flush() }
            /^URIs:/ { uri = $2 }
            /^Suites:/ { sub(/^Suites: */, ""); suites = $0 }
            /^Components:/ { sub(/^Components: */, ""); components = $0 }
            END { flush() }' "$file"
    done
}

# Prints NAME=VALUE for what the environment says about the network.
fresh_environment() {
    local name
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY \
        SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS CURL_CA_BUNDLE GIT_SSL_CAINFO; do
        if [ -n "${!name:-}" ]; then printf '%s=%s\n' "$name" "${!name}"; fi
    done
    if command -v npm >/dev/null 2>&1; then
        printf 'npm_config_registry=%s\n' "$(npm config get registry 2>/dev/null)"
    fi
}

fresh_bootstrap() {
    local root=$1 mirror
    mirror=$(fresh_sources | awk -v suite="$FRESH_SUITE" '$2 == suite { print $1; exit }')
    say "debootstrap $FRESH_SUITE (minbase)"
    # Without a mirror of our own debootstrap takes its default.
    debootstrap --variant=minbase "$FRESH_SUITE" "$root" ${mirror:+"$mirror"} \
        >build/fresh-debootstrap.log 2>&1 || {
        tail -n 20 build/fresh-debootstrap.log >&2
        die "debootstrap failed"
    }
    fresh_sources | awk -v suite="$FRESH_SUITE" \
        '$2 ~ "^" suite "-" { print "deb", $1, $2, "main" }' >>"$root/etc/apt/sources.list"
    apt-config dump | grep -E '^Acquire::(http|https)::(Proxy|CaInfo|Verify)|^Acquire::Retries' \
        >"$root/etc/apt/apt.conf.d/99host" || true
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    mkdir -p "$root/usr/local/share/ca-certificates" "$root/dev/shm" "$root/proc"
    find /usr/local/share/ca-certificates -name '*.crt' \
        -exec cp -L {} "$root/usr/local/share/ca-certificates/" \; 2>/dev/null || true
    local name file
    while IFS='=' read -r name file; do
        case $name in
        *CERT_FILE | *CA_CERTS | *CA_BUNDLE | *CAINFO)
            if [ -f "$file" ]; then
                mkdir -p "$root$(dirname "$file")"
                cp -L "$file" "$root$file"
            fi
            ;;
        esac
    done < <(fresh_environment)
    git clone --quiet --no-hardlinks "$BAY_ROOT" "$root/root/patchbay"
}

# fresh_inside COMMAND…: in the new system, in its own name spaces. Takes the place of the (sub)shell
# it is called in, so that ending that process ends everything inside.
fresh_inside() {
    local root=$fresh_folder/root variables
    mapfile -t variables < <(fresh_environment)
    # shellcheck disable=SC2016  # expanded by the inner shell
    exec unshare --mount --pid --fork --kill-child --propagation private \
        bash -c 'mount -t proc proc "$1/proc"; mount -t tmpfs tmpfs "$1/dev/shm" || true
            mkdir -p "$1/dev/pts"; mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts" || true
            rm -f "$1/dev/ptmx"; ln -s pts/ptmx "$1/dev/ptmx"; shift; exec "$@"' \
        inside "$root" chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root LANG=C.UTF-8 "${variables[@]}" "$@"
}

fresh_end() {
    if [ -n "$fresh_gateway" ]; then kill -KILL "$fresh_gateway" 2>/dev/null || true; fi
    if [ -n "$fresh_folder" ]; then rm -rf --one-file-system "$fresh_folder"; fi
}

fresh_answers() {
    curl --silent --fail --noproxy '*' --max-time 2 --output /dev/null "http://$FRESH_ADDRESS/healthz"
}

# The first command: it answers within its time.
fresh_run() {
    local log=build/fresh-run.log
    if fresh_answers; then die "something answers on $FRESH_ADDRESS already; stop it first"; fi
    say "./dev run"
    fresh_inside /root/patchbay/dev run >"$log" 2>&1 </dev/null &
    fresh_gateway=$!
    local waited=0
    until fresh_answers; do
        if ! kill -0 "$fresh_gateway" 2>/dev/null || [ "$waited" -ge 1200 ]; then
            tail -n 40 "$log" >&2
            printf '   ./dev run: FAILED\n'
            fresh_gateway=
            return 1
        fi
        sleep 1
        waited=$((waited + 1))
    done
    printf '   ./dev run: answers after %d s\n' "$waited"
    kill -KILL "$fresh_gateway" 2>/dev/null || true
    wait "$fresh_gateway" 2>/dev/null || true
    fresh_gateway=
}

fresh_test() {
    local log=build/fresh-test.log
    say "./dev test"
    if (fresh_inside /root/patchbay/dev test) >"$log" 2>&1 </dev/null; then
        printf '   ./dev test: %s\n' "$(tail -n 1 "$log")"
    else
        grep -vE ': ok$' "$log" | tail -n 60 >&2
        printf '   ./dev test: FAILED: %s\n' "$(tail -n 1 "$log")"
        return 1
    fi
}

command_fresh() {
    local only=${1:-all} failures=0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null 2>&1 || die "fresh: needs root, or sudo, to make a system"
        exec sudo --preserve-env "$BAY_ROOT/dev" fresh "$@"
    fi
    deps_install debootstrap curl git
    mkdir -p build
    fresh_folder=$(mktemp -d "${TMPDIR:-/tmp}/patchbay-fresh.XXXXXX")
    trap fresh_end EXIT
    fresh_bootstrap "$fresh_folder/root"
    case $only in
    all) fresh_run || failures=1; fresh_test || failures=1 ;;
    run) fresh_run || failures=1 ;;
    test) fresh_test || failures=1 ;;
    *) die "fresh: '$only' is neither run nor test" ;;
    esac
    if [ "$failures" -ne 0 ]; then
        say "fresh: FAILED"
        return 1
    fi
    say "fresh: green"
}
