#!/usr/bin/python3
"""The fence inside of PostgreSQL (deploy/postgres), on a real server: the scenarios of every database, and what only
PostgreSQL can do. The database is set up with the very lines of the README."""

import os
import re

from fence_scenarios import AGAIN, LEASE, PARAMETER, REQUIRED, SHOP_DB, SIGNATURE, STALE, STORE, OTHER, Order, begin, call, named, remember, \
    shop_test, state_of, wait_until_it_waits
from world import ROOT, Keys, check, check_equal, check_in, main, signed_token
from world.postgres import PrivatePostgres
from world.sql import quoted

SQL = ROOT / "deploy" / "postgres" / "pawl.sql"
DENIED, PREREQUISITE = "42501", "55000"
REPLACE_TRIGGER = "CREATE OR REPLACE TRIGGER pawl_fence BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()"

# What a user has before Pawl comes.
SHOP = """
CREATE ROLE shop_owner;
CREATE ROLE shop_app LOGIN;
CREATE ROLE reader LOGIN IN ROLE pg_read_all_data, pg_write_all_data;
GRANT CREATE ON DATABASE shop TO shop_owner;
GRANT CREATE, USAGE ON SCHEMA public TO shop_owner;
SET ROLE shop_owner;
CREATE TABLE orders (id bigint PRIMARY KEY, state text, version integer NOT NULL DEFAULT 0);
CREATE TABLE prices (id bigint PRIMARY KEY, price bigint);
CREATE TABLE plain (id bigint PRIMARY KEY, state text, version integer NOT NULL DEFAULT 0);
CREATE TABLE audit (number bigserial PRIMARY KEY, token bigint, seen bigint);
GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON orders, prices, plain, audit TO shop_app;
GRANT USAGE ON SEQUENCE audit_number_seq TO shop_app;
"""


class Postgres:
    """How PostgreSQL wants to be spoken to, and in what it differs."""

    readme = ROOT / "deploy" / "postgres" / "README.md"
    administrator, start = "postgres", PrivatePostgres
    isolations, looks_again, reads_lock = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"), ("READ COMMITTED",), ()
    snapshots = (("SELECT 1", "REPEATABLE READ", AGAIN, AGAIN), ("SELECT 1", "SERIALIZABLE", AGAIN, AGAIN))
    call, name = "SELECT pawl.pawl_fence({}, {})", "SELECT pawl.pawl_store({})"
    remember = keep = "SELECT set_config('pawl.token', {}, true)"
    outside, impatient, readings = "SELECT 1", "SET lock_timeout = '1s'", ("SELECT 1",)
    keys = "SELECT kid, encode(secret, 'hex') FROM pawl.keys ORDER BY kid"
    truncated, after_error, keys_end_in_lf = PARAMETER, "25P02", False
    inserted = LEASE

    def set_up(self):
        SHOP_DB.server.create_database("shop")
        SHOP_DB.server.psql(text=SHOP, database="shop")
        for kind, block in re.findall(r"```(sh|sql)\n(.*?)```", self.readme.read_text(), re.S)[:6]:
            if kind == "sh":
                check_equal(SHOP_DB.shell(block), "")
            else:
                owner = "" if block.startswith("GRANT") else "SET ROLE shop_owner;"
                SHOP_DB.server.psql("-v", "ON_ERROR_STOP=1", text=owner + block, database="shop")

    def install(self):
        SHOP_DB.server.load(SQL, "shop")

    def typed(self, block):
        """As Debian has it: root, who alone reads the key file, becomes the server's user."""
        if SHOP_DB.keys_file in block and os.geteuid() == 0:
            block = "runuser -u postgres -- " + block
        return block, {"PGHOST": SHOP_DB.server.folder, "PGUSER": "postgres"}

    def literal(self, text):
        return quoted(text)

    def begin(self, session, isolation):
        session(f"BEGIN ISOLATION LEVEL {isolation}")

    def waits(self, session):
        return SHOP_DB.admin.value(f"SELECT cardinality(pg_blocking_pids({session.pid}))") != "0"

    def gives(self, number):
        return [(str(number),)]

    def check_refusal(self, error, facts):
        check_equal(error.detail, facts)
        check(error.hint.startswith("Nothing was changed. "), error.hint)

    def prepare(self, decision, *statements):
        one = SHOP_DB.session()
        begin(one, *statements, "PREPARE TRANSACTION 'p'")
        one.close()
        SHOP_DB.sessions.remove(one)
        return SHOP_DB.session(), f"{decision} PREPARED 'p'"

    def ways(self, order, fresh):
        return {"upsert": f"INSERT INTO orders VALUES ({order.id}, 'x') ON CONFLICT (id) DO UPDATE SET state = 'x'",
                "merge": f"MERGE INTO orders USING (SELECT {order.id} AS id) AS s ON orders.id = s.id WHEN MATCHED THEN UPDATE SET state = 'x'",
                "cte": f"WITH w AS (UPDATE orders SET state = 'x' WHERE id = {order.id} RETURNING 1) SELECT * FROM w",
                "copy": f"COPY orders (id, state) FROM PROGRAM 'printf {fresh},x' (FORMAT csv)"}

    def rows_of(self, session, statement):
        return len(session(statement + " RETURNING version"))


SHOP_DB.driver = Postgres()


# -- what a call alone does not cover, and the trigger does


@shop_test
def without_the_trigger_a_rollback_to_a_savepoint_undoes_the_fence_unnoticed():
    order, one, other = Order("plain"), SHOP_DB.session(), SHOP_DB.session()
    begin(one, "SAVEPOINT s", order.fence(33), "ROLLBACK TO SAVEPOINT s")
    other(order.fence(34))
    one(order.set("33"))
    one("COMMIT")
    check_equal(order.state(), "33")  # this is the hole
    check_equal(order.mark(), (1, 34))


@shop_test
def with_the_trigger_a_rollback_to_a_savepoint_takes_the_token_away_too(order, one):
    begin(one, "SAVEPOINT s", order.fence(33), "ROLLBACK TO SAVEPOINT s")
    check_equal(state_of(one, order.set("33")), REQUIRED)
    one("ROLLBACK")
    check_equal((order.mark(), order.state()), ((1, 1), "new"))


@shop_test
def what_is_read_in_the_statement_that_calls_the_fence_is_from_before_its_wait_as_the_document_says(order, one, other):
    begin(other, order.fence(5), order.set("5"))
    begin(one)
    one.start(f"{order.fence(6)}, state FROM orders WHERE id = {order.id}")
    wait_until_it_waits(one)
    other("COMMIT")
    check_equal(one.answer(), [("6", "new")])
    check_equal(order.state(one), "5")


@shop_test
def a_write_that_is_undone_takes_its_mark_along_and_one_that_stays_keeps_it(order, one):
    keep = remember(order.token(33))
    begin(one, keep, order.set("stays"), "SAVEPOINT s", order.set("undone"), "ROLLBACK TO SAVEPOINT s")
    one("COMMIT")
    check_equal((order.mark(), order.state()), ((1, 33), "stays"))


@shop_test
def who_swallows_the_refusal_and_writes_on_is_refused_by_the_trigger(order, one, other):
    other(order.fence(34))
    swallow = f"""DO $$ BEGIN
        BEGIN PERFORM pawl.pawl_fence({quoted(order.token(33))}, '{order.lease}'); EXCEPTION WHEN OTHERS THEN NULL; END;
        {order.set('stale')}; END $$"""
    check_equal(state_of(one, swallow), REQUIRED)
    begin(one, remember(order.token(33)))
    check_equal(state_of(one, swallow), STALE)
    one("ROLLBACK")
    check_equal(order.state(), "new")


@shop_test
def a_token_set_for_a_transaction_is_gone_after_it(order, one):
    begin(one, order.fence(33), order.set("33"))
    one("COMMIT")
    check_equal(state_of(one, order.set("after")), REQUIRED)


@shop_test
def many_rows_in_one_transaction_move_the_mark_once():
    one, lease = SHOP_DB.session(), "prices"
    token = signed_token(SHOP_DB.keys, lease, 7, 1)
    SHOP_DB.admin("CREATE TABLE rows (id bigint); GRANT ALL ON rows TO shop_app; CREATE TRIGGER pawl_fence AFTER INSERT ON rows "
                  "FOR EACH ROW EXECUTE FUNCTION pawl.pawl_fenced_write('prices')")
    begin(one, call(token, lease))
    place = one.value("SELECT 1") and SHOP_DB.admin
    one("INSERT INTO rows SELECT generate_series(1, 1000)")
    one("COMMIT")
    # The page of the mark holds a few versions and not a thousand.
    check(int(place.value("SELECT pg_relation_size('pawl.marks')")) <= 5 * 8192, "the marks have grown")
    one("TRUNCATE rows")


@shop_test
def a_mark_that_a_restore_brought_with_the_number_of_this_transaction_is_moved_all_the_same(order, one, other):
    SHOP_DB.admin(f"UPDATE pawl.marks SET moved_by = (pg_current_xact_id()::text::bigint + 1)::text::xid8 WHERE lease = '{order.lease}'")
    begin(other, "SELECT 1", isolation="REPEATABLE READ")
    begin(one, order.fence(1), "COMMIT")
    check_equal(state_of(other, order.fence(1)), AGAIN)


# -- how a trigger is attached


@shop_test
def a_fixed_lease_is_checked_once_for_each_statement(one):
    token = signed_token(SHOP_DB.keys, "prices", 9, 1)
    check_equal(state_of(one, "INSERT INTO prices VALUES (1, 1)"), REQUIRED)
    begin(one, call(token, "prices"), "INSERT INTO prices SELECT generate_series(1, 100), 1",
          "TRUNCATE prices")
    one("COMMIT")
    begin(one, remember(signed_token(SHOP_DB.keys, 'prices', 8, 1)))
    check_equal(state_of(one, "DELETE FROM prices WHERE false"), STALE)


@shop_test
def a_trigger_for_each_statement_is_refused_where_a_statement_on_a_part_would_pass_it_over():
    SHOP_DB.admin("""
        CREATE TABLE parts (id bigint) PARTITION BY RANGE (id); CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
        CREATE TABLE parent_of (id bigint); CREATE TABLE child_of (id bigint) INHERITS (parent_of);
        GRANT ALL ON parts, parts_1, parent_of, child_of TO shop_app""")
    one, fence = SHOP_DB.session(), call(signed_token(SHOP_DB.keys, "parts", 1, 1), "parts")
    for guarded in ("parts", "parts_1", "parent_of", "child_of"):
        SHOP_DB.admin(f"CREATE TRIGGER pawl_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {guarded} FOR EACH STATEMENT "
                      "EXECUTE FUNCTION pawl.pawl_fenced_write('parts')")
        begin(one, fence)
        check_equal(state_of(one, f"INSERT INTO {guarded} VALUES (1)"), PREREQUISITE, guarded)
        one("ROLLBACK")
        begin(one, fence, f"TRUNCATE {guarded}")
        one("ROLLBACK")
        SHOP_DB.admin(f"DROP TRIGGER pawl_fence ON {guarded}")
    for guarded, child in (("parts", "parts_1"), ("child_of", "parent_of")):
        SHOP_DB.admin(f"CREATE TRIGGER pawl_fence AFTER INSERT OR UPDATE OR DELETE ON {guarded} FOR EACH ROW "
                      "EXECUTE FUNCTION pawl.pawl_fenced_write('parts')")
        begin(one, fence, f"INSERT INTO {guarded} VALUES (1)")
        one("COMMIT")
        check_equal(state_of(one, f"DELETE FROM {child}"), REQUIRED, child)


@shop_test
def what_another_trigger_makes_of_the_row_is_what_counts():
    order, target, one = Order(), Order(), SHOP_DB.session()
    begin(one, target.fence(5), f"DELETE FROM orders WHERE id = {target.id}")
    one("COMMIT")
    SHOP_DB.admin(f"""CREATE FUNCTION public.turn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := {target.id}; RETURN NEW; END $$;
        CREATE TRIGGER zzz BEFORE UPDATE ON orders FOR EACH ROW WHEN (NEW.state = 'turn') EXECUTE FUNCTION public.turn()""")
    try:
        begin(one, order.fence(6))
        check_equal(state_of(one, order.set("turn")), LEASE)
        one("ROLLBACK")
    finally:
        SHOP_DB.admin("DROP TRIGGER zzz ON orders; DROP FUNCTION public.turn")


@shop_test
def a_cascade_and_a_write_straight_into_a_partition_are_fenced():
    SHOP_DB.admin("""
        CREATE TABLE parent (id bigint PRIMARY KEY);
        CREATE TABLE child (id bigint REFERENCES parent ON DELETE CASCADE) PARTITION BY RANGE (id);
        CREATE TRIGGER pawl_fence AFTER INSERT OR UPDATE OR DELETE ON child FOR EACH ROW EXECUTE FUNCTION pawl.pawl_fenced_write('order:{id}');
        CREATE TABLE child_1 PARTITION OF child FOR VALUES FROM (0) TO (1000000);
        GRANT ALL ON parent, child, child_1 TO shop_app""")
    order, one = Order(), SHOP_DB.session()
    begin(one, order.fence(5), f"INSERT INTO parent VALUES ({order.id})", f"INSERT INTO child VALUES ({order.id})")
    one("COMMIT")
    check_equal(state_of(one, f"DELETE FROM parent WHERE id = {order.id}"), REQUIRED)
    check_equal(state_of(one, f"INSERT INTO child_1 VALUES ({order.id})"), REQUIRED)
    check_equal(state_of(one, f"DELETE FROM child_1 WHERE id = {order.id}"), REQUIRED)
    begin(one, order.fence(5), f"DELETE FROM parent WHERE id = {order.id}")
    one("COMMIT")


@shop_test
def a_trigger_that_is_attached_in_another_way_lets_nothing_through(one):
    token = remember(signed_token(SHOP_DB.keys, 'odd', 5, 1))
    ways = (("BEFORE INSERT ON odd FOR EACH ROW", "'odd'", PREREQUISITE), ("AFTER INSERT ON odd FOR EACH ROW", "", PREREQUISITE),
            ("AFTER INSERT ON odd FOR EACH ROW", "'odd', 'odd'", PREREQUISITE), ("AFTER INSERT ON odd FOR EACH ROW", "'a:{none}'", "42703"),
            ("AFTER INSERT ON odd FOR EACH ROW", "'a:{day}'", "42804"), ("AFTER INSERT ON odd FOR EACH ROW", "'a:{id}{id}'", PARAMETER),
            ("AFTER INSERT ON odd FOR EACH ROW", "'a:{id'", PARAMETER), ("AFTER INSERT ON odd FOR EACH ROW", "'{none_yet}'", PARAMETER),
            ("BEFORE INSERT ON odd FOR EACH STATEMENT", "'a:{id}'", PARAMETER), ("AFTER INSERT ON odd FOR EACH ROW", "'a:{words}'", PARAMETER))
    SHOP_DB.admin("CREATE TABLE odd (id bigint, day date, none_yet text, words text); GRANT ALL ON odd TO shop_app")
    for how, argument, state in ways:
        SHOP_DB.admin(f"CREATE TRIGGER pawl_fence {how} EXECUTE FUNCTION pawl.pawl_fenced_write({argument})")
        begin(one, token)
        check_equal(state_of(one, "INSERT INTO odd VALUES (1, '2026-01-01', NULL, 'two words')"), state, f"{how} {argument}")
        one("ROLLBACK")
        SHOP_DB.admin("DROP TRIGGER pawl_fence ON odd")
    check_equal(SHOP_DB.admin("SELECT FROM odd"), [])


# -- what an application may not do


@shop_test
def an_application_can_neither_lower_a_mark_nor_read_a_key_nor_replace_the_fence(order, one):
    attempts = (
        "SELECT * FROM pawl.keys", "SELECT * FROM pawl.marks", "SELECT * FROM pawl.key_file", "UPDATE pawl.marks SET token = 1",
        "DELETE FROM pawl.marks", "TRUNCATE pawl.marks", "INSERT INTO pawl.marks VALUES ('a', 1, 1, '1')", "LOCK TABLE pawl.marks",
        "INSERT INTO pawl.keys VALUES ('mine', '0123456789abcdef')", "INSERT INTO pawl.key_file (line) VALUES ('x')",
        f"SELECT pawl.pawl_store('{OTHER}')", f"UPDATE pawl.store SET id = '{OTHER}'", "DELETE FROM pawl.store", "SELECT pawl.own_store()",
        "COPY pawl.keys TO STDOUT", f"SELECT pawl.raise_mark('{STORE}', '{order.lease}', 1, 1)", "SELECT pawl.mac('a', 'b')", "SELECT pawl.read_keys()",
        "SELECT pawl.is_signed('a', 'k1', 'AAAA')", "SELECT pawl.refuse('stale-token', '', '{}')",
        "CREATE OR REPLACE FUNCTION pawl.pawl_fence(fencing_token text, lease text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        "CREATE FUNCTION pawl.pawl_fence(fencing_token unknown, lease unknown) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        "CREATE FUNCTION pawl.pawl_fence(fencing_token varchar, lease varchar) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        "DROP FUNCTION pawl.pawl_fence(text, text)", "ALTER FUNCTION pawl.pawl_fence(text, text) RESET ALL", "DROP SCHEMA pawl CASCADE",
        "ALTER FUNCTION pawl.pawl_fence(text, text) SECURITY INVOKER", "DROP EXTENSION pgcrypto CASCADE", "CREATE TABLE pawl.mine (id int)",
        "CREATE TRIGGER mine BEFORE UPDATE ON pawl.marks FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE RULE mine AS ON UPDATE TO pawl.marks DO INSTEAD NOTHING", "ALTER TABLE pawl.marks DISABLE ROW LEVEL SECURITY",
        REPLACE_TRIGGER, "ALTER TABLE orders DISABLE TRIGGER pawl_fence", "DROP TRIGGER pawl_fence ON orders", "ALTER TABLE orders DISABLE TRIGGER ALL",
        "SET ROLE pawl_owner", "SET ROLE shop_owner", "SET session_replication_role = replica", "GRANT pawl_owner TO shop_app",
        "SET SESSION AUTHORIZATION pawl_owner", "CREATE TABLE x (a text REFERENCES pawl.marks)",
    )
    secrets = [key.hex() for _, key in SHOP_DB.keys.keys]
    for statement in attempts:
        begin(one)
        error = one.error(statement)
        one("ROLLBACK")
        check(error.state in (DENIED, "42939", "2BP01"), f"{statement}: {error}")
        check(not any(secret in str(vars(error)) for secret in secrets), statement)
    check_equal(order.mark(), (1, 1))
    one(order.fence(2))
    check_equal(state_of(one, order.fence(1)), STALE)


@shop_test
def those_who_may_read_and_write_all_data_see_no_key_and_move_no_mark():
    order, reader = Order(), SHOP_DB.session("reader")
    for table in ("keys", "marks", "key_file"):
        check_equal(reader(f"SELECT * FROM pawl.{table}"), [])
    reader("UPDATE pawl.marks SET token = 0")
    reader("DELETE FROM pawl.marks")
    check_equal(state_of(reader, "INSERT INTO pawl.marks VALUES ('a', 1, 1, '1')"), DENIED)
    check_equal(state_of(reader, "INSERT INTO pawl.keys VALUES ('mine', '0123456789abcdef')"), DENIED)
    check_equal(state_of(reader, "TRUNCATE pawl.marks"), DENIED)
    check_equal(order.mark(), (1, 1))


@shop_test
def a_role_that_may_create_roles_gets_around_it_in_postgresql_15_as_the_readme_says():
    SHOP_DB.admin("CREATE ROLE maker LOGIN CREATEROLE")
    maker = SHOP_DB.session("maker")
    old = int(SHOP_DB.admin.value("SHOW server_version_num")) < 160000
    check_equal(state_of(maker, "GRANT pawl_owner TO maker"), None if old else DENIED)
    SHOP_DB.admin("REVOKE pawl_owner FROM maker")


@shop_test
def who_has_the_right_trigger_or_sets_the_replication_role_gets_around_it_as_the_readme_says(order):
    for right, deed in (("TRIGGER ON orders", REPLACE_TRIGGER), ("SET ON PARAMETER session_replication_role", "SET session_replication_role = replica")):
        SHOP_DB.admin(f"GRANT {right} TO shop_app")
        begin(SHOP_DB.session(), deed, order.set("unfenced"), "ROLLBACK")
        SHOP_DB.admin(f"REVOKE {right} FROM shop_app")


@shop_test
def nothing_that_an_application_puts_in_front_of_the_names_is_taken(order, one):
    SHOP_DB.admin("CREATE SCHEMA evil AUTHORIZATION shop_app; GRANT TEMPORARY ON DATABASE shop TO shop_app")
    one(order.fence(34))
    one("""
        GRANT USAGE ON SCHEMA evil TO PUBLIC;
        CREATE TEMP TABLE marks (lease text PRIMARY KEY, epoch bigint, token bigint, moved_by xid8);
        CREATE TEMP TABLE keys (kid text, secret bytea);
        INSERT INTO keys VALUES ('k9', '0123456789abcdef');
        CREATE FUNCTION evil.string_to_array(text, text) RETURNS text[] LANGUAGE sql AS $$ SELECT ARRAY['99', '', '', '', '', '', ''] $$;
        CREATE FUNCTION evil.format(text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'SELECT 1' $$;
        CREATE FUNCTION evil.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT '' $$;
        CREATE FUNCTION evil.hmac(bytea, bytea, text) RETURNS bytea LANGUAGE sql AS $$ SELECT ''::bytea $$;
        CREATE FUNCTION evil.is_true(bigint, bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
        CREATE FUNCTION evil.is_false(bigint, bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
        CREATE FUNCTION evil.same(bytea, bytea) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
        CREATE FUNCTION evil.same(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
        CREATE FUNCTION evil.differs(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
        CREATE OPERATOR evil.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.is_true);
        CREATE OPERATOR evil.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.is_false);
        CREATE OPERATOR evil.= (LEFTARG = bytea, RIGHTARG = bytea, FUNCTION = evil.same);
        CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.same);
        CREATE OPERATOR evil.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.differs);
        CREATE OPERATOR evil.~ (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.same);
        CREATE DOMAIN evil.bigint AS pg_catalog.int8 DEFAULT 1""")
    for path in ("evil, pg_temp, pg_catalog, pawl", "pg_temp, evil, public, pg_catalog", "''"):
        one(f"SET search_path = {path}")
        check_equal(state_of(one, order.fence(33)), STALE, path)
        forged = signed_token(Keys("k1"), order.lease, 99, 1)
        check_equal(state_of(one, call(forged, order.lease)), SIGNATURE, path)
        other = signed_token(SHOP_DB.keys, "other", 99, 1)
        check_equal(state_of(one, call(other, order.lease)), LEASE, path)
        check_equal(state_of(one, "UPDATE public.orders SET state = 'evil' WHERE id OPERATOR(pg_catalog.=) " + str(order.id)), REQUIRED, path)
    one("RESET search_path")
    check_equal((order.mark(), order.state()), ((1, 34), "new"))


@shop_test
def a_cast_of_the_applications_own_runs_with_the_applications_rights(one):
    SHOP_DB.admin("CREATE SCHEMA mine AUTHORIZATION shop_app")
    one("""
        GRANT USAGE ON SCHEMA mine TO PUBLIC;
        CREATE TYPE mine.t AS (a int);
        CREATE FUNCTION mine.text_of(mine.t) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as %', current_user; END $$;
        CREATE CAST (mine.t AS text) WITH FUNCTION mine.text_of(mine.t) AS IMPLICIT;
        CREATE TABLE mine.guarded (id mine.t);
        CREATE TRIGGER pawl_fence AFTER INSERT ON mine.guarded FOR EACH ROW EXECUTE FUNCTION pawl.pawl_fenced_write('a:{id}')""")
    check_equal(one.error("INSERT INTO mine.guarded VALUES (ROW(1))").message, "as shop_app")


@shop_test
def settings_of_the_session_change_nothing(order, one):
    one(order.fence(34))
    for setting in ("standard_conforming_strings = off", "transform_null_equals = on", "row_security = off", "escape_string_warning = off",
                    "bytea_output = 'escape'", "DateStyle = 'German'", "check_function_bodies = off", "enable_indexscan = off",
                    "client_encoding = 'LATIN1'", "quote_all_identifiers = on", "backslash_quote = on", "array_nulls = off"):
        one(f"SET {setting}")
    check_equal(state_of(one, order.fence(33)), STALE)
    check_equal(state_of(one, call(signed_token(Keys('k1'), order.lease, 99, 1), order.lease)), SIGNATURE)
    begin(one, order.fence(35), order.set("35"))
    one("COMMIT")
    check_equal((order.mark(), order.state()), ((1, 35), "35"))


# -- installing it


@shop_test
def it_is_not_installed_where_somebody_else_could_reach_in():
    SHOP_DB.server.create_database("foreign_schema")
    SHOP_DB.server.psql("-c", "CREATE SCHEMA pawl", database="foreign_schema")

    def refusal(database):
        try:
            SHOP_DB.server.load(SQL, database)
        except RuntimeError as error:
            return str(error)
        return ""
    check_in("not of pawl_owner", refusal("foreign_schema"))
    SHOP_DB.admin("GRANT pawl_owner TO shop_app")
    try:
        check_in("shop_app is a member of pawl_owner", refusal("shop"))
    finally:
        SHOP_DB.admin("REVOKE pawl_owner FROM shop_app")


@shop_test
def pgcrypto_in_another_schema_is_taken_where_it_is_and_cannot_be_swapped():
    SHOP_DB.server.create_database("elsewhere")
    SHOP_DB.server.psql("-c", 'CREATE SCHEMA "Tools"', "-c", 'CREATE EXTENSION pgcrypto SCHEMA "Tools"',
                        "-c", 'GRANT USAGE ON SCHEMA "Tools" TO PUBLIC', database="elsewhere")
    SHOP_DB.server.load(SQL, "elsewhere")
    check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text(), "elsewhere"), "")
    admin = SHOP_DB.session("postgres", "elsewhere")
    named(STORE, admin)
    pass_it = call(signed_token(SHOP_DB.keys, "a", 5, 1), "a")
    admin(pass_it)
    check_equal(state_of(admin, "DROP EXTENSION pgcrypto"), "2BP01")
    admin('ALTER EXTENSION pgcrypto SET SCHEMA public')
    admin(pass_it)


@shop_test
def a_dump_takes_the_marks_along(order):
    SHOP_DB.session()(order.fence(34))
    SHOP_DB.server.create_database("restored")
    SHOP_DB.server.psql("-v", "ON_ERROR_STOP=1", text=SHOP_DB.server.dump("shop", "--exclude-table-data=pawl.keys"), database="restored")
    one = SHOP_DB.session(database="restored")
    check_equal(state_of(one, order.fence(34)), SIGNATURE)
    check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text(), "restored"), "")
    check_equal(state_of(one, order.fence(33)), STALE)
    check_equal(state_of(one, order.set("x")), REQUIRED)
    begin(one, order.fence(34), order.set("34"))
    one("COMMIT")


main(SHOP_DB.close)
