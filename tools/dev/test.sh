# Testing and fuzzing. Sourced by ./dev. Every phase adds "phase passed failed skipped" to one file;
# the last line printed is their sum.

TALLY=build/tally
DURATIONS=build/durations

# tally PHASE PASSED FAILED [SKIPPED]
tally() {
    printf '%s %s %s %s\n' "$1" "$2" "$3" "${4:-0}" >>"$TALLY"
    printf '   %s: %s passed, %s failed%s\n' "$1" "$2" "$3" "$([ "${4:-0}" = 0 ] || echo ", $4 skipped")"
}

# timed NAME COMMAND…: and how long it took.
timed() {
    local began=$SECONDS
    "${@:2}"
    printf '%6d s  %s\n' $((SECONDS - began)) "$1" >>"$DURATIONS"
}

# tally_command PHASE COMMAND…: one case, by its exit status.
tally_command() {
    local phase=$1
    shift
    if "$@"; then tally "$phase" 1 0; else tally "$phase" 0 1; fi
}

# ctest in build/KIND; the cases inside each cmocka program are counted, not the programs.
test_ctest() {
    local kind=$1 phase=$2
    shift 2
    local status=0 runner=()
    # ThreadSanitizer wants its addresses where it left them.
    if [ "$kind" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then
        runner=(setarch "$(uname -m)" -R)
    fi
    say "$phase"
    "${runner[@]}" ctest --test-dir "build/$kind" --parallel "$(cores)" --output-on-failure \
        --no-tests=error "$@" >"build/$kind.ctest.log" 2>&1 </dev/null || status=$?
    [ "$status" -eq 0 ] || sed -n '/\*\*\*/,$p' "build/$kind.ctest.log" | grep -vE '^/?[^ ]*build/[^ ]*$|^(Could not|Unable to) find |^Looked in '
    local counts
    counts=$(tools/count-cases "build/$kind/Testing/Temporary/LastTest.log")
    grep -h '^skipped: ' "build/$kind/Testing/Temporary/LastTest.log" | sort -u || true # and why
    # shellcheck disable=SC2086  # three words on purpose
    tally "$phase" $counts
    if [ "$status" -ne 0 ] && [ "$(cut -d' ' -f2 <<<"$counts")" = 0 ]; then
        tally "$phase-run" 0 1
    fi
}

# A build that breaks is one failed case; what could be built is still tested.
test_build() {
    local phase=$1
    shift
    (build_kind "$@") || tally "$phase-build" 0 1
}

# Every seed of every fuzz target once.
test_seeds() {
    local source passed=0 failed=0 skipped=0 log=build/seeds.log
    for source in tests/fuzz/fuzz_*.c; do
        local name=${source##*/fuzz_}
        name=${name%.c}
        local target=build/fuzz/fuzz_$name
        if [ -f build/fuzz/build.ninja ] && ! grep -qF "fuzz_$name:" build/fuzz/build.ninja; then
            printf 'skipped: seeds: %s: a library that it needs is not installed\n' "$name"
            skipped=$((skipped + 1))
            continue
        fi
        local seeds=tests/fuzz/seeds/$name
        [ -d "$seeds" ] || seeds=tests/fuzz/seeds/${name%_*}
        [ -d "$seeds" ] || seeds=/dev/null
        if "$target" -runs=0 "$seeds" >"$log" 2>&1; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            tail -n 60 "$log"
        fi
    done
    tally seeds "$passed" "$failed" "$skipped"
}

# Foreign suites end with "N passed, N failed[, N skipped]".
test_foreign() {
    local name=$1 status=0 log=build/$1.log line
    say "$name"
    "tests/$name/run" </dev/null >"$log" 2>&1 || status=$?
    line=$(grep -oE '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?' "$log" | tail -n 1) || true
    grep "^$name: skipped" "$log" || true # and why
    if [ -z "$line" ]; then
        tail -n 40 "$log"
        tally "$name" 0 1
        return
    fi
    local numbers
    read -r -a numbers <<<"$(tr -dc '0-9 \n' <<<"$line" | tr -s ' ')"
    [ "${numbers[1]}" = 0 ] && [ "$status" -eq 0 ] || tail -n 60 "$log"
    tally "$name" "${numbers[0]}" "${numbers[1]}" "${numbers[2]:-0}"
    if [ "$status" -ne 0 ] && [ "${numbers[1]}" = 0 ]; then
        tally "$name-run" 0 1
    fi
}

# JSONTestSuite may be beside the clone; npm has it.
json_suite() {
    local into=$PWD/build/json-suite reason
    [ -d ../shared/data/jsontestsuite/test_parsing ] && return
    if reason=$(tools/npm-install tests/json-suite "$into"); then
        cp tests/json-suite/extract.mjs "$into/"
        "$into/node_modules/.bin/node" "$into/extract.mjs" "$into/cases"
        export BAY_JSON_SUITE=$into/cases
    else
        printf 'skipped: JSONTestSuite: %s\n' "$reason"
    fi
}

command_test() {
    deps test
    mkdir -p build
    : >"$TALLY"
    : >"$DURATIONS"
    # The exit status of what a sanitizer ends is none that a program of ours has.
    export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:exitcode=99}
    export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
    export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/tsan.supp}
    say "lint"
    timed lint tools/lint "$TALLY" || true
    timed "asan: build" test_build asan test all benches
    json_suite
    timed "asan: run" test_ctest test asan
    timed "clang: build" test_build clang fuzz all benches
    timed "clang: seeds" test_seeds
    timed "tsan: build" test_build tsan tsan threaded_tests
    # The sweeps play whole sessions on one thread.
    timed "tsan: run" test_ctest tsan tsan -R '^(net|http|front|call|store|mcp_transport|a2a_transport|sdk|agents|upstream|sessions|gateway|contract|scenario)/' -E '^scenario/sweep_'
    # Without TLS, SQLite and regular expressions: what is left works, and what is not there says so.
    # Left out are the tests of what needs them: sealed rounds, digests of skills, tasks in a file, patterns.
    local needy='contract/(door(_agents|_bridges)?|rules|stores)|sdk/(client_meets_server|client_skills|fields|main|questions|mrtr_state|task_threads|tasks|tasks_troubled)'
    timed "bare: build" test_build bare bare threaded_tests
    timed "bare: run" test_ctest bare bare -R '^(net|http|front|call|auth|store|mcp_transport|a2a_transport|sdk|agents|upstream|contract)/' -E "^($needy)\$"
    printf 'skipped: bare: %s: as wholes they need sealed values, digests, patterns or tasks in a file\n' "$needy"
    tally bare-needy 0 0 "$(ctest --test-dir build/bare -N -R "^($needy)\$" | sed -n 's/^Total Tests: //p')"
    timed "package: build" test_build package package
    timed "package: run" test_foreign package
    # Against the sanitized build: a leak or a wild read fails the suite that caused it.
    export BAY_BUILD=build/test BAY_ERAS=quick
    timed interop test_foreign interop
    timed conformance test_foreign conformance
    timed schema test_foreign schema
    say "how long each took"
    cat "$DURATIONS"
    awk '{ passed += $2; failed += $3; skipped += $4 }
        END {
            printf "%d passed, %d failed", passed, failed
            if (skipped) printf ", %d skipped", skipped
            printf "\n"
            exit failed > 0 || passed == 0
        }' "$TALLY"
}

command_fuzz() {
    local seconds=$1 targets=() target
    [[ $seconds =~ ^[0-9]+$ ]] || die "fuzz: '$seconds' is no number of seconds"
    deps test
    build_kind fuzz fuzzers
    for target in build/fuzz/fuzz_*; do
        if [ -f "$target" ] && [ -x "$target" ]; then targets+=("$target"); fi
    done
    [ ${#targets[@]} -gt 0 ] || die "there is no tests/fuzz/fuzz_*.c"
    # Two at a time, so each may run for twice its share.
    local each=$((seconds * 2 / ${#targets[@]}))
    [ "$each" -gt 0 ] || each=1
    say "${#targets[@]} targets, $each seconds each, two at a time"
    printf '%s\n' "${targets[@]}" | xargs -P 2 -I{} tests/fuzz/run {} "$each"
}
