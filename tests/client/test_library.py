#!/usr/bin/python3
"""libpawl as a library: what it shows, how it is linked, C++, the example of the page, and what happens without memory."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

from client_world import (BUILD, CUT_AT_ONCE, CUT_BEFORE_ANSWER, CUT_IN_ANSWER, CUT_IN_REQUEST, ROOT, Line, World, canned,
                          compile_c, program, sanitizers, wait_until)
from world import check, check_equal, check_in, main, skip, test
from world.process import die_with_parent

WORLD = World()
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="pawl-library-"))
HEADER = (ROOT / "api/client/pawl.h").read_text(encoding="utf-8")
DECLARED = set(re.findall(r"^[a-z][\w \*]*?\b(pawl_\w+)\(", HEADER, re.MULTILINE))
CPP = """
#include "api/client/pawl.h"
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>
class Hold {
public:
    Hold(pawl *services, const char *name)
    {
        pawl_problem problem = {};
        pawl_guard_options options = {};
        problem.size = sizeof(problem);
        options.size = sizeof(options);
        options.lost = [](pawl_guard *, const pawl_problem *, void *user) { static_cast<Hold *>(user)->lost = true; };
        options.user = this;
        if (pawl_guard_open(services, name, nullptr, &options, &guard, &problem) != PAWL_OK)
            throw std::runtime_error(problem.code);
    }
    ~Hold() { pawl_guard_close(guard, nullptr); }
    Hold(const Hold &) = delete;
    pawl_guard *guard = nullptr;
    std::atomic<bool> lost{false};
};
int main()
{
    pawl *services = pawl_open(nullptr, nullptr);
    int caught = 0;
    try {
        Hold hold(services, "object");
        std::atomic<int> wrong{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; i++)
            threads.emplace_back([&] {
                for (int n = 0; n < 1000; n++)
                    wrong += pawl_guard_enter(hold.guard, nullptr) != PAWL_OK || pawl_guard_leave(hold.guard, nullptr) != PAWL_OK;
            });
        for (auto &one : threads)
            one.join();
        try {
            Hold second(services, "object");
        } catch (const std::runtime_error &error) {
            caught += std::strcmp(error.what(), "lease-held") == 0;
        }
        if (wrong == 0 && !hold.lost && pawl_guard_remaining_ms(hold.guard) > 0)
            throw std::logic_error("it is released on the way out");
    } catch (const std::logic_error &) {
        caught++;
    }
    pawl_close(services);
    return caught == 2 ? 0 : 1;
}
"""


def symbols(*command):
    text = subprocess.run(["nm", *command], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in text.splitlines() if len(line.split()) == 3 and line.split()[1] != "A"}


def run(binary, *arguments, **variables):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_")}
    return subprocess.run([binary, *arguments], env={**clean, **variables}, capture_output=True, text=True, check=False,
                          timeout=60, preexec_fn=die_with_parent)


def services():
    return {"PAWL_LEASE_URL": WORLD.lease_daemon.url, "PAWL_GATEWAY_URL": WORLD.gateway_daemon.url}


@test
def it_shows_exactly_what_the_header_declares_and_each_has_a_version():
    check(len(DECLARED) >= 20, DECLARED)
    check_equal(symbols("-D", "--defined-only", str(BUILD / "libpawl.so")), {f"{one}@@PAWL_0" for one in DECLARED})
    check_equal(symbols("-g", "--defined-only", str(BUILD / "libpawl.a")), DECLARED)


@test
def its_name_says_which_programs_it_fits_and_it_needs_cjson_and_gnutls_alone():
    text = subprocess.run(["readelf", "-d", str(BUILD / "libpawl.so")], check=True, capture_output=True, text=True).stdout
    check_in("Library soname: [libpawl.so.0]", text)
    needed = {name.partition(".")[0] for name in re.findall(r"Shared library: \[(.*?)\]", text)}
    check_equal(needed - {"libc", "ld-linux-x86-64"}, {"libcjson", "libgnutls"})


@test
def it_ends_no_process_prints_nothing_and_asks_no_clock_but_that_of_the_boot():
    """A wall clock may be set."""
    wanted = {line.split()[-1].partition("@")[0] for line in subprocess.run(
        ["nm", "-D", "--undefined-only", str(BUILD / "libpawl.so")], check=True, capture_output=True,
        text=True).stdout.splitlines()}
    never = {"exit", "_exit", "abort", "printf", "puts", "putchar", "fputs", "perror", "signal", "sigaction", "setenv",
             "time", "gettimeofday", "ftime", "timespec_get", "clock"}
    check_equal(wanted & never, set())
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "api/client").glob("*.[ch]"))
    check_equal(set(re.findall(r"\bCLOCK_[A-Z]+\b", sources)), {"CLOCK_BOOTTIME"})
    check("clock_gettime(CLOCK_BOOTTIME" in sources, "it is asked")


@test
def a_guard_in_cpp_is_an_object_that_gives_the_lease_back_when_something_is_thrown():
    source = FOLDER / "object.cc"
    source.write_text(CPP, encoding="utf-8")
    for standard in ("c++11", "c++20"):
        told = run(compile_c(source, f"-std={standard}", compiler="g++"), **services())
        check_equal((told.returncode, told.stdout + told.stderr), (0, ""))
        check_equal(WORLD.look("object")["state"], "free")


@test
def the_header_stands_alone_in_c99_and_in_cpp():
    for compiler, standard in (("gcc", "c99"), ("g++", "c++98")):
        subprocess.run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-long-long", "-fsyntax-only",
                        "-x", "c++" if compiler == "g++" else "c", str(ROOT / "api/client/pawl.h")], check=True)


@test
def a_struct_of_a_later_version_is_filled_as_far_as_it_is_known_and_one_without_a_size_not_at_all():
    source = FOLDER / "sizes.c"
    source.write_text('#include "api/client/pawl.h"\n#include <string.h>\n'
                      "struct later { struct pawl_grant grant; char more[64]; };\n"
                      "int main(void) {\n"
                      "struct later later; struct pawl_grant none; struct pawl_problem problem; struct pawl *pawl = pawl_open(NULL, NULL);\n"
                      "memset(&later, 7, sizeof(later)); memset(&none, 0, sizeof(none)); memset(&problem, 0, sizeof(problem));\n"
                      "if (pawl_acquire(pawl, \"sizes\", NULL, &none, &problem) != PAWL_NOT_DONE || problem.code[0] != 0) return 1;\n"
                      "problem.size = sizeof(problem); later.grant.size = sizeof(later);\n"
                      "if (pawl_acquire(pawl, \"sizes\", NULL, &none, &problem) != PAWL_NOT_DONE) return 2;\n"
                      "if (strcmp(problem.code, \"bad-argument\") != 0) return 3;\n"
                      "if (pawl_acquire(pawl, \"sizes\", NULL, &later.grant, &problem) != PAWL_OK || problem.code[0] != 0) return 4;\n"
                      "for (size_t i = 0; i < sizeof(later.more); i++) if (later.more[i] != 7) return 5;\n"
                      "if (later.grant.size != sizeof(later) || pawl_release(pawl, &later.grant, NULL) != PAWL_OK) return 6;\n"
                      "pawl_close(pawl); return 0; }\n", encoding="utf-8")
    check_equal(run(compile_c(source, "-std=c99"), **services()).returncode, 0)


@test
def a_lookup_that_was_given_up_outlives_dlclose():
    source = FOLDER / "unloaded.c"
    source.write_text('#include "api/client/pawl.h"\n#include <dlfcn.h>\n#include <netdb.h>\n#include <sched.h>\n'
                      "#include <semaphore.h>\n#include <stdio.h>\n#include <unistd.h>\n"
                      "static sem_t go, begun; static char thread[64];\n"
                      "int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list) {\n"
                      "(void)port; (void)list; if (host[0] == '1' || (hints->ai_flags & AI_NUMERICHOST)) return EAI_NONAME;\n"
                      "snprintf(thread, sizeof(thread), \"/proc/self/task/%d\", gettid()); sem_post(&begun); sem_wait(&go); return EAI_AGAIN; }\n"
                      "int main(int count, char **words) {\n"
                      "struct pawl_options options = {.size = sizeof(options), .timeout_ms = 100, .attempts = 1};\n"
                      "struct pawl_view view = {.size = sizeof(view)}; struct pawl *pawl; void *library = dlopen(words[count - 1], RTLD_NOW);\n"
                      "struct pawl *(*open)(const struct pawl_options *, struct pawl_problem *);\n"
                      "enum pawl_outcome (*look)(struct pawl *, const char *, struct pawl_view *, struct pawl_problem *);\n"
                      "void (*close)(struct pawl *);\n"
                      "*(void **)&open = dlsym(library, \"pawl_open\"); *(void **)&look = dlsym(library, \"pawl_look\");\n"
                      "*(void **)&close = dlsym(library, \"pawl_close\"); sem_init(&go, 0, 0); sem_init(&begun, 0, 0);\n"
                      "pawl = open(&options, NULL); if (look(pawl, \"a\", &view, NULL) != PAWL_NOT_DONE) return 1;\n"
                      "sem_wait(&begun); close(pawl); if (dlclose(library) != 0) return 2;\n"
                      "sem_post(&go); while (access(thread, F_OK) == 0) sched_yield(); return 0; }\n", encoding="utf-8")
    binary = compile_c(source, "-std=c11", "-D_GNU_SOURCE", "-rdynamic", library=())
    check_equal(run(binary, str(BUILD / "libpawl.so"), PAWL_LEASE_URL="http://slow.invalid:1").returncode, 0)


@test
def a_program_with_more_rights_than_its_caller_takes_no_address_from_its_environment():
    if os.geteuid() != 0:
        skip("only root makes such a program")
    source = FOLDER / "secure.c"
    source.write_text('#include "api/client/pawl.h"\nint main(void) { return pawl_open(0, 0) == 0; }\n', encoding="utf-8")
    binary = compile_c(source, "-std=c99")
    for mode, status in ((0o755, 1), (0o4700, 0)):
        os.chown(binary, 65534, 65534)
        os.chmod(binary, mode)
        check_equal(run(binary, PAWL_LEASE_URL="no address").returncode, status, oct(mode))


@test
def the_static_library_links_with_what_pkg_config_says():
    source = FOLDER / "static.c"
    # It has names of its own that the inside of the library has too.
    source.write_text('#include "api/client/pawl.h"\nint json_parse(void); int json_parse(void) { return 7; }\n'
                      "int call_run(void); int call_run(void) { return 1; }\n"
                      "int main(void) { struct pawl *one = pawl_open(NULL, NULL); pawl_close(one);\n"
                      "return one != NULL && json_parse() + call_run() == 8 ? 0 : 1; }\n", encoding="utf-8")
    check("@" not in (BUILD / "pawl.pc").read_text(encoding="utf-8"), "it is filled in")
    env = dict(os.environ, PKG_CONFIG_PATH=str(BUILD))
    flags = subprocess.run(["pkg-config", "--static", "--libs", "pawl"], env=env, check=True, capture_output=True,
                           text=True).stdout.split()
    where = flags.index("-lpawl")
    binary = compile_c(source, "-std=c99", library=[*flags[:where], "-Wl,-Bstatic", "-lpawl", "-Wl,-Bdynamic", *flags[where + 1:]])
    check_equal(run(binary).returncode, 0)
    check("libpawl" not in subprocess.run(["readelf", "-d", binary], check=True, capture_output=True, text=True).stdout.partition(
        "RUNPATH")[0], "it is not in the program")
    version = subprocess.run(["pkg-config", "--modversion", "pawl"], env=env, check=True, capture_output=True, text=True).stdout
    check_equal(version.strip(), (ROOT / "VERSION").read_text(encoding="utf-8").strip())


@test
def a_program_is_built_in_the_tree_with_what_pkg_config_says():
    source, binary = FOLDER / "tree.c", FOLDER / "tree"
    source.write_text("#include <pawl.h>\nint main(void) { struct pawl *one = pawl_open(0, 0); pawl_close(one); return one == 0; }\n",
                      encoding="utf-8")
    told = subprocess.run(["pkg-config", "--cflags", "--libs", "pawl"], env=dict(os.environ, PKG_CONFIG_PATH=str(BUILD)), check=True,
                          capture_output=True, text=True).stdout.split()
    compiler, watched = sanitizers()
    subprocess.run([compiler, *watched, "-o", binary, source, *told], check=True, cwd=FOLDER)
    check_equal(run(str(binary)).returncode, 0)
    check_in(f"=> {BUILD}/libpawl.so.0", subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout)


@test
def the_example_of_the_page_compiles_and_does_what_the_page_says():
    page = (ROOT / "docs/libpawl.md").read_text(encoding="utf-8")
    example = re.search(r"```c\n(.*?)```", page, re.DOTALL).group(1)
    check(25 <= len(example.strip().splitlines()) <= 40, len(example.splitlines()))
    (FOLDER / "pawl.h").write_text(HEADER, encoding="utf-8")
    (FOLDER / "example.c").write_text(example, encoding="utf-8")
    binary = compile_c(FOLDER / "example.c", f"-I{FOLDER}")
    told = run(binary, **services())
    check_equal((told.returncode, told.stderr), (0, ""), told.stdout)
    check_equal(WORLD.gateway("GET", "/v1/resources/orders:42").body, b"packed")
    check_equal(WORLD.look("orders:42")["state"], "free")
    WORLD.acquire("orders:42", holder="somebody", ttl_ms=30000)
    told = run(binary, **services())
    check_equal(told.returncode, 75, told)
    check_in("somebody", told.stderr)
    told = run(binary, PAWL_LEASE_URL="localhost")
    check_equal(told.returncode, 69, told)
    check_in("PAWL_LEASE_URL", told.stderr)


@test
def the_page_names_every_outcome_and_every_code_of_the_library():
    page = (ROOT / "docs/libpawl.md").read_text(encoding="utf-8")
    for one in re.findall(r"^    (PAWL_\w+) = \d,? +/\*", HEADER, re.MULTILINE):
        check_in(f"`{one}`", page)
    inside = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "api/client").glob("*.c"))
    for code in set(re.findall(r'PAWL_\w+,\s*"([a-z]+-[a-z]+)"', inside)):
        check_in(f"`{code}`", page)
        check_in(f'"{code}"', HEADER)


@test
def it_works_under_a_program_that_runs_out_of_memory():
    binary = compile_c(ROOT / "tests/client/hungry.c", "-std=c11", "-D_GNU_SOURCE")
    told = run(binary, **services())
    check_equal(told.returncode, 0, told.stdout + told.stderr)
    ended = json.loads(told.stdout)
    print("#", ended, flush=True)
    check(ended["NOT_DONE"] > 10 and ended["UNKNOWN"] > 0, ended)
    wait_until(lambda: WORLD.look("hungry")["state"] == "free", "nothing is left held")


@test
def nothing_leaks_and_no_descriptor_stays_open_under_valgrind(name):
    line = Line(WORLD.lease_daemon.port)
    checked = ("valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite,indirect,possible", "--track-fds=yes",
               "--errors-for-leak-kinds=definite,indirect,possible", "--error-exitcode=99")
    with program(line.url, WORLD.gateway_daemon.url, before=checked, attempts=2, timeout=2000) as one:
        for plan in (None, CUT_AT_ONCE, CUT_IN_REQUEST, CUT_BEFORE_ANSWER, CUT_IN_ANSWER, canned(200, b"x"), canned(502, b"y")):
            for command in (f"acquire {name}", "renew", f"look {name}", f"put {name} body=x", f"get {name}", f"delete {name}",
                            "release"):
                line.plan(*([plan] if plan else []))
                one(command)
        line.plan()
        one(f"guard {name} ttl=3000")
        one("enter")
        one("leave")
        wait_until(lambda: int(one("state")["renewed"]) > 0, "it renewed")
        check_equal(one("close")["outcome"], "OK")
        one(f"guard {name} ttl=1000")
        line.go_dark()
        wait_until(lambda: int(one("state")["lost"]) > 0, "it is lost")
        line.go_on()
        one("close")
        one(f"acquire {WORLD.name()}")
        one("release")
        status = one.end()
        told = one.told()
    line.close()
    check_equal(status, 0, told)
    check("Open file descriptor" not in told and "Open AF_INET" not in told, told)


main(WORLD.close)
