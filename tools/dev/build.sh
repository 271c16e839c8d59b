# Configuring and building. Sourced by ./dev. Every kind has its own folder under build/.

# build_configure KIND: (re)writes build/KIND.
build_configure() {
    local options=(-DBAY_WERROR=ON)
    case $1 in
    release) options=(-DCMAKE_BUILD_TYPE=Release -DBAY_TESTS=OFF) ;;
    debug) options+=(-DCMAKE_BUILD_TYPE=Debug) ;;
    test) options+=(-DCMAKE_BUILD_TYPE=Debug -DBAY_SANITIZE=address,undefined) ;;
    tsan) options+=(-DCMAKE_BUILD_TYPE=Debug -DBAY_SANITIZE=thread) ;;
    bare) options+=(-DCMAKE_BUILD_TYPE=Debug -DBAY_SANITIZE=address,undefined -DBAY_TLS=OFF -DBAY_HTTP2=OFF
        -DBAY_SQLITE=OFF -DBAY_PATTERNS=OFF) ;;
    small) options=(-DCMAKE_BUILD_TYPE=MinSizeRel -DBAY_TESTS=OFF -DBAY_TLS=OFF -DBAY_HTTP2=OFF -DBAY_SQLITE=OFF
        -DBAY_PATTERNS=OFF) ;;
    package) options=(-DCMAKE_BUILD_TYPE=Release -DBAY_TESTS=OFF -DBAY_PACKAGE=ON
        -DCMAKE_INSTALL_PREFIX=/usr) ;;
    fuzz) options+=(-DCMAKE_BUILD_TYPE=Debug -DBAY_SANITIZE=address,undefined -DBAY_FUZZ=ON
        -DCMAKE_C_COMPILER=clang) ;;
    *) die "build: '$1' is none of debug, release, small, package, bare, tsan, fuzz" ;;
    esac
    cmake -G Ninja -S . -B "build/$1" "${options[@]}" >"build/$1.configure.log" 2>&1 || {
        cat "build/$1.configure.log" >&2
        die "cmake failed"
    }
}

# build_kind KIND [TARGET…]: builds as much of it as can be; prints the compiler's words only when
# they matter.
build_kind() {
    local kind=$1
    shift
    mkdir -p build
    build_configure "$kind"
    say "building build/$kind"
    ninja -k 0 -C "build/$kind" "$@" >"build/$kind.log" 2>&1 || {
        grep -E -A12 'FAILED:|error:|warning:' "build/$kind.log" | grep -vE '^(/usr/bin/|: &&|\[[0-9]+/)' |
            head -n 120 >&2
        die "building build/$kind failed; the whole record is build/$kind.log"
    }
    ! grep -E 'warning:' "build/$kind.log" >&2 || say "there were warnings (above)"
}
