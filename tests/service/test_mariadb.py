#!/usr/bin/python3
"""The fence inside of MariaDB (deploy/mariadb), on a real server: the scenarios of every database, and what only MariaDB
can do. The database is set up with the very lines of the README."""

import hashlib
import hmac
import os
import re

from fence_scenarios import AGAIN, LEASE, OTHER, PARAMETER, REQUIRED, SHOP_DB, SIGNATURE, STALE, Order, begin, call, fenced, remember, \
    shop_test, state_of
from world import ROOT, Keys, check, check_equal, check_in, main, signed_token
from world.mariadb import PrivateMariadb
from world.sql import quoted

DENIED, NO_TRANSACTION = "42000", "25000"

# What a user has before Pawl comes.
SHOP = """
CREATE DATABASE shop;
CREATE USER shop_app@localhost;
CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, state TEXT, version INT NOT NULL DEFAULT 0) ENGINE = InnoDB;
CREATE TABLE shop.order_lines (order_id BIGINT, line INT) ENGINE = InnoDB;
CREATE TABLE shop.prices (id BIGINT PRIMARY KEY, price BIGINT) ENGINE = InnoDB;
CREATE TABLE shop.plain (id BIGINT PRIMARY KEY, state TEXT, version INT NOT NULL DEFAULT 0) ENGINE = InnoDB;
CREATE TABLE shop.audit (number BIGINT AUTO_INCREMENT PRIMARY KEY, token BIGINT, seen BIGINT) ENGINE = InnoDB;
"""


class Mariadb:
    """How MariaDB wants to be spoken to, and in what it differs."""

    readme = ROOT / "deploy" / "mariadb" / "README.md"
    administrator, start = "root", PrivateMariadb
    isolations = looks_again = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
    reads_lock = ("SERIALIZABLE",)
    # What a snapshot that is too old is refused with: an older token's, and the others'.
    snapshots = (("SET innodb_snapshot_isolation = OFF", "REPEATABLE READ", STALE, AGAIN),
                 ("SET innodb_snapshot_isolation = ON", "REPEATABLE READ", "HY000", "HY000"))
    call, name, remember, keep = "CALL pawl.pawl_fence({}, {})", "CALL pawl.pawl_store({})", "SET @pawl_token = {}", "DO {} IS NULL"
    outside = "SET autocommit = 0"
    keys = "SELECT kid, HEX(inner_pad), HEX(outer_pad) FROM pawl.keys ORDER BY kid"
    readings = ("SET default_regex_flags = ''", "SET default_regex_flags = 'MULTILINE,EXTENDED,DOTALL,UNGREEDY'")
    impatient = "SET innodb_lock_wait_timeout = 1"
    truncated, after_error, keys_end_in_lf = DENIED, None, True
    inserted = STALE  # by a stale token of another lease: it is looked at before the row is there

    def set_up(self):
        SHOP_DB.server.client(text=SHOP)
        self.install()
        check_equal(SHOP_DB.load_keys(SHOP_DB.keys.text()), "")
        check_equal(SHOP_DB.shell(SHOP_DB.blocks("sh")[2]), "")
        sql = SHOP_DB.blocks("sql")
        SHOP_DB.server.client(text=sql[0] + sql[2])

    def install(self):
        check_equal(SHOP_DB.shell(SHOP_DB.blocks("sh")[0]), "")

    def typed(self, block):
        return re.sub("^mariadb", f"mariadb --no-defaults --socket={SHOP_DB.server.socket} -u root", block), {}

    def literal(self, text):
        return quoted(text.replace("\\", "\\\\") if text else text)

    def begin(self, session, isolation):
        session(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        session("START TRANSACTION")

    def waits(self, session):
        """InnoDB looks anew only when nobody has asked it for 0.1 s (tried)."""
        SHOP_DB.admin("DO SLEEP(0.11)")
        return SHOP_DB.admin.value("SELECT COUNT(*) FROM information_schema.innodb_trx "
                                   f"WHERE trx_mysql_thread_id = {session.id} AND trx_state = 'LOCK WAIT'") != "0"

    def gives(self, _number):
        return []

    def check_refusal(self, error, facts):
        check_in(". ROLLBACK", error.message)
        if "mark" in facts:
            check_in("token {presented_token} of epoch {presented_epoch} is older than {mark} of epoch {mark_epoch}".format(**facts), error.message)

    def prepare(self, decision, *statements):
        one = SHOP_DB.session()
        for statement in ("XA START 'x'", *statements, "XA END 'x'", "XA PREPARE 'x'"):
            one(statement)
        return one, f"XA {decision} 'x'"

    def ways(self, order, fresh):
        path = os.path.join(SHOP_DB.server.folder, "rows")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"{fresh}\tx\n")
        return {"upsert": f"INSERT INTO orders (id, state) VALUES ({order.id}, 'x') ON DUPLICATE KEY UPDATE state = 'x'",
                "replace": f"REPLACE INTO orders (id, state) VALUES ({order.id}, 'x')",
                "insert ignore": f"INSERT IGNORE INTO orders (id, state) VALUES ({fresh}, 'x')",
                "join": f"UPDATE orders AS o JOIN plain AS p ON TRUE SET o.state = 'x' WHERE o.id = {order.id}",
                "multi delete": f"DELETE o FROM orders AS o WHERE o.id = {order.id}",
                "copy": f"LOAD DATA INFILE '{path}' INTO TABLE orders (id, state)",
                "returning": f"DELETE FROM orders WHERE id = {order.id} RETURNING id",
                "prepared": f"EXECUTE IMMEDIATE \"{order.set('x')}\""}

    def rows_of(self, session, statement):
        session(statement)
        return int(session.value("SELECT ROW_COUNT()"))


SHOP_DB.driver = Mariadb()


# -- HMAC-SHA256 out of SHA2()


@shop_test
def the_mac_is_that_of_rfc_4231():
    def mac(key, content):
        key = f"X'{key.hex()}'"
        return SHOP_DB.admin.value(f"SELECT LOWER(HEX(pawl.mac(pawl.pad({key}, 0x36), pawl.pad({key}, 0x5c), X'{content.hex()}')))")
    long = (b"This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed "
            b"before being used by the HMAC algorithm.")
    for key, content, wanted in (
            (b"\x0b" * 20, b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (b"Jefe", b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
            (b"\xaa" * 20, b"\xdd" * 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
            (bytes(range(1, 26)), b"\xcd" * 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
            (b"\xaa" * 131, b"Test Using Larger Than Block-Size Key - Hash Key First",
             "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
            (b"\xaa" * 131, long, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2")):
        check_equal(mac(key, content), wanted)
    for size in (16, 63, 64, 65, 128, 1024):
        key, content = os.urandom(size - 1) + b"\0", b" " + os.urandom(200) + b" \0"
        check_equal(mac(key, content), hmac.new(key, content, hashlib.sha256).hexdigest(), f"a key of {size} bytes")


# -- transactions


@shop_test
def without_a_transaction_there_is_nothing_to_fence(order, one):
    one(remember(order.token(5)))  # left by the connection's client of before
    check_equal(state_of(one, order.fence(4)), NO_TRANSACTION)
    check_equal(state_of(one, order.set("unfenced")), REQUIRED)
    one("SET autocommit = 0")
    one(order.fence(5))
    one(order.set("5"))
    one("COMMIT")
    check_equal((order.mark(), order.state()), ((1, 5), "5"))


# -- what a call alone does not cover, and the triggers do


@shop_test
def without_the_triggers_a_rollback_to_a_savepoint_undoes_the_fence_unnoticed():
    order, one, other = Order("plain"), SHOP_DB.session(), SHOP_DB.session()
    begin(one, "SAVEPOINT s", order.fence(33), "ROLLBACK TO SAVEPOINT s")
    check_equal(order.mark(), None)
    one(order.set("33"))
    one("COMMIT")
    check_equal((order.state(), order.mark()), ("33", None))  # this is the hole: the write has no mark
    check_equal(fenced(other, order.fence(5)), None)


@shop_test
def a_commit_that_a_statement_brings_along_does_not_let_a_write_through_unfenced(order, one, other):
    begin(one, order.fence(33), "SET autocommit = 1")
    SHOP_DB.admin("GRANT CREATE, DROP ON shop.scratch TO shop_app@localhost")
    one("CREATE TABLE scratch (id INT)")
    check_equal(fenced(other, order.fence(34)), None)
    check_equal(state_of(one, order.set("stale")), STALE)
    one("DROP TABLE scratch")


@shop_test
def who_swallows_the_refusal_and_writes_on_is_refused_by_the_triggers(order, one, other):
    check_equal(fenced(other, order.fence(34)), None)
    swallow = f"""BEGIN NOT ATOMIC
        BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; {order.fence(33)}; END;
        {order.set('stale')}; END"""
    begin(one)
    check_equal(state_of(one, swallow), REQUIRED)
    one(remember(order.token(33)))
    check_equal(state_of(one, order.set("stale")), STALE)
    check_equal(state_of(one, f"UPDATE IGNORE orders SET state = 'stale' WHERE id = {order.id}"), STALE)
    one("COMMIT")
    check_equal(order.state(), "new")


def swallowed(session, deed):
    """A function and a trigger of the application's own that go on when this fails."""
    body = f"BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; {deed};"
    SHOP_DB.admin(f"CREATE OR REPLACE FUNCTION swallows() RETURNS INT MODIFIES SQL DATA {body} RETURN 1; END")
    SHOP_DB.admin(f"CREATE OR REPLACE TRIGGER swallows AFTER INSERT ON audit FOR EACH ROW {body} END")
    SHOP_DB.admin("GRANT EXECUTE ON FUNCTION shop.swallows TO shop_app@localhost")
    check_equal(session.value("SELECT swallows()"), "1", deed)
    session("INSERT INTO audit (token, seen) VALUES (0, 0)")
    session("COMMIT")
    SHOP_DB.admin("DROP TRIGGER swallows; DROP FUNCTION swallows")


@shop_test
def a_handler_in_a_function_or_a_trigger_keeps_nothing_that_a_stale_token_wrote():
    """MariaDB undoes nothing of a statement that fails there: what a handler swallows would stay."""
    order, fresh, one, other = Order(), next(SHOP_DB.numbers), SHOP_DB.session(), SHOP_DB.session()
    SHOP_DB.admin("CREATE TABLE rates (id INT) ENGINE = InnoDB; CALL pawl.pawl_guard('shop', 'rates', 'rates')")
    rates = [signed_token(SHOP_DB.keys, "rates", number, 1) for number in (33, 34)]
    check_equal(fenced(other, order.fence(34)), None)
    check_equal(fenced(other, call(rates[1], "rates")), None)
    for token in (None, order.token(33)):
        for deed in (order.set("stale"), f"DELETE FROM orders WHERE id = {order.id}", f"INSERT INTO order_lines VALUES ({order.id}, 1)",
                     f"INSERT INTO orders (id, state) VALUES ({fresh}, 'stale')", f"REPLACE INTO orders (id, state) VALUES ({order.id}, 'stale')",
                     f"UPDATE orders SET id = {fresh} WHERE id = {order.id}", "INSERT INTO rates VALUES (7)"):
            begin(one, remember(token))
            swallowed(one, deed)
            check_equal((order.state(), SHOP_DB.admin(f"SELECT * FROM orders WHERE id = {fresh}")), ("new", []), deed)
            check_equal(SHOP_DB.admin(f"SELECT * FROM order_lines WHERE order_id = {order.id}"), [], deed)
            check_equal(SHOP_DB.admin("SELECT * FROM rates"), [], deed)
    for token in (rates[0], order.token(34)):  # of a lease without a column also what is only not its own
        begin(one, remember(token))
        swallowed(one, "INSERT INTO rates VALUES (7)")
        check_equal(SHOP_DB.admin("SELECT * FROM rates"), [])
    begin(one, remember(order.token(34)))
    swallowed(one, f"INSERT INTO order_lines VALUES ({fresh}, 1)")  # this much stays, as the README says
    check_equal(len(SHOP_DB.admin(f"SELECT * FROM order_lines WHERE order_id = {fresh}")), 2)
    SHOP_DB.admin("DROP TABLE rates")


@shop_test
def a_lock_wait_that_timed_out_does_not_let_a_write_through(order, one, other):
    begin(other, order.fence(34))
    one("SET innodb_lock_wait_timeout = 0")
    begin(one)
    check_equal(state_of(one, order.fence(33)), "HY000")
    check_equal(state_of(one, order.set("late")), REQUIRED)
    one(remember(order.token(33)))
    check_equal(state_of(one, order.set("late")), "HY000")
    other("COMMIT")
    one("COMMIT")
    check_equal(order.state(), "new")


@shop_test
def the_token_stays_with_the_connection_until_it_is_taken_away(order, one):
    begin(one, order.fence(5))
    one("COMMIT")
    check_equal(state_of(one, order.set("leftover")), None)  # as the README says
    one(remember(None))
    check_equal(state_of(one, order.set("x")), REQUIRED)


@shop_test
def a_mark_is_found_by_its_index_and_no_other_is_locked():
    order, other, one, two = Order(), Order(), SHOP_DB.session(), SHOP_DB.session()
    begin(one, order.fence(5))
    locked = SHOP_DB.admin.value(f"SELECT trx_rows_locked FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = {one.id}")
    check(int(locked) <= 3, f"{locked} rows are locked")  # the mark twice, and the key
    two("SET innodb_lock_wait_timeout = 1")
    check_equal(fenced(two, other.fence(5)), None)


@shop_test
def a_fixed_lease_and_a_column_of_another_name_guard_too(order, one):
    check_equal(state_of(one, "INSERT INTO prices VALUES (1, 1)"), REQUIRED)
    begin(one, call(signed_token(SHOP_DB.keys, "prices", 9, 1), "prices"), "INSERT INTO prices VALUES (1, 1), (2, 2)")
    one("COMMIT")
    one(remember(signed_token(SHOP_DB.keys, "prices", 8, 1)))
    check_equal(state_of(one, "DELETE FROM prices"), STALE)
    begin(one, order.fence(5), f"INSERT INTO order_lines VALUES ({order.id}, 1)")
    check_equal(state_of(one, f"INSERT INTO order_lines VALUES ({order.id}0, 1)"), LEASE)
    check_equal(state_of(one, "INSERT INTO order_lines VALUES (NULL, 1)"), PARAMETER)
    one("COMMIT")


@shop_test
def a_table_whose_writes_cannot_be_undone_is_refused_and_one_that_became_so_is_found():
    admin = SHOP_DB.admin
    guard = "CALL pawl.pawl_guard('shop', {}, {})"
    for engine in ("MyISAM", "Aria", "MEMORY"):
        admin(f"CREATE OR REPLACE TABLE odd (id INT, day DATE) ENGINE = {engine}")
        check_equal(state_of(admin, guard.format("'odd'", "'odd:{id}'")), PARAMETER, engine)
    admin("CREATE OR REPLACE TABLE odd (id INT, day DATE) ENGINE = InnoDB")
    for table, template in (("'none'", "'a'"), ("'odd'", "'a:{day}'"), ("'odd'", "'a:{none}'"), ("'odd'", "'a:{id}{id}'"),
                            ("'odd'", "'a:{id'"), ("'odd'", "'a:{id`)); DROP TABLE odd; -- }'"), ("NULL", "'a'")):
        check_equal(state_of(admin, guard.format(table, template)), PARAMETER, f"{table} {template}")
    check_equal(admin("SELECT trigger_name FROM information_schema.triggers WHERE event_object_table = 'odd'"), [])
    found = SHOP_DB.blocks("sql")[1].rstrip().rstrip(";")
    admin(guard.format("'odd'", "'odd:{id}'"))
    check_equal(admin(found), [])
    admin("ALTER TABLE odd ENGINE = Aria")
    check_equal(admin(found), [("shop", "odd", "Aria", "5")])
    admin("ALTER TABLE odd ENGINE = InnoDB; DROP TRIGGER pawl_update_odd")
    check_equal(admin(found), [("shop", "odd", "InnoDB", "4")])
    admin("DROP TABLE odd")


@shop_test
def what_is_refused_does_not_stay_in_an_empty_table_that_is_filled_in_bulk():
    one, token = SHOP_DB.session(), signed_token(SHOP_DB.keys, "bulk", 5, 1)
    SHOP_DB.admin("CREATE TABLE bulk (id INT PRIMARY KEY) ENGINE = InnoDB; CALL pawl.pawl_guard('shop', 'bulk', 'bulk')")
    check_equal(fenced(one, call(token, "bulk")), None)
    one("SET unique_checks = 0, foreign_key_checks = 0")
    for number in (4, 5):
        begin(one, remember(signed_token(SHOP_DB.keys, "bulk", number, 1)))
        check_equal(state_of(one, "INSERT INTO bulk VALUES (1), (2)"), NO_TRANSACTION)
        one("COMMIT")
        check_equal(SHOP_DB.admin("SELECT * FROM bulk"), [])


@shop_test
def a_cascade_runs_no_trigger_as_the_readme_says():
    admin, one, order = SHOP_DB.admin, SHOP_DB.session(), Order()
    admin("""CREATE TABLE parent (id BIGINT PRIMARY KEY) ENGINE = InnoDB;
        CREATE TABLE child (id BIGINT, FOREIGN KEY (id) REFERENCES parent (id) ON DELETE CASCADE) ENGINE = InnoDB;
        CALL pawl.pawl_guard('shop', 'child', 'order:{id}')""")
    begin(one, order.fence(5), f"INSERT INTO parent VALUES ({order.id})", f"INSERT INTO child VALUES ({order.id})")
    one("COMMIT")
    one(remember(None))
    one("DELETE FROM parent")
    check_equal(one("SELECT * FROM child"), [])
    admin("DROP TABLE child, parent")


@shop_test
def a_dump_takes_the_marks_along_and_lets_nothing_through_until_it_is_installed_again():
    order, one, server = Order(), SHOP_DB.session(), SHOP_DB.server
    check_equal(fenced(one, order.fence(34), order.set("34")), None)
    dump = server.run(["mariadb-dump", "--no-defaults", f"--socket={server.socket}", "-u", "root", "--single-transaction", "--routines", "--hex-blob",
                       "--databases", "pawl", "shop"])
    SHOP_DB.admin("DROP DATABASE pawl; DROP DATABASE shop; DROP USER pawl_owner@localhost")
    server.client(text=dump)
    SHOP_DB.admin("USE shop")
    one = SHOP_DB.session()
    for token in (None, order.token(35)):
        begin(one, remember(token))
        check_in(state_of(one, order.set("x")), (DENIED, "HY000"), token)
        one("ROLLBACK")
    SHOP_DB.driver.install()
    server.client(text=SHOP_DB.blocks("sql")[2])
    check_equal(fenced(one, order.fence(33)), STALE)
    check_equal(state_of(one, order.set("x")), REQUIRED)
    check_equal(fenced(one, order.fence(34), order.set("again")), None)
    check_equal((order.mark(), order.state()), ((1, 34), "again"))


# -- what an application may not do


@shop_test
def an_application_can_neither_lower_a_mark_nor_read_a_key_nor_replace_the_fence(order, one):
    attempts = (
        "SELECT * FROM pawl.keys", "SELECT * FROM pawl.marks", "SELECT * FROM pawl.key_file", "UPDATE pawl.marks SET token = 1",
        f"CALL pawl.pawl_store('{OTHER}')", f"UPDATE pawl.store SET id = '{OTHER}'", "DELETE FROM pawl.store", "SELECT * FROM pawl.store",
        "DELETE FROM pawl.marks", "TRUNCATE pawl.marks", "INSERT INTO pawl.marks VALUES ('a', 1, 1, 1)", "LOCK TABLES pawl.marks WRITE",
        "INSERT INTO pawl.keys VALUES ('mine', '0', '0')", "INSERT INTO pawl.key_file (line) VALUES ('x')", "DROP TABLE pawl.marks",
        "CREATE TEMPORARY TABLE pawl.marks (lease INT)", "CREATE TEMPORARY TABLE pawl.keys (kid INT)", "RENAME TABLE pawl.marks TO shop.marks",
        "CREATE TABLE pawl.mine (id INT)", "CREATE VIEW pawl.mine AS SELECT 1", "ALTER TABLE pawl.marks DROP PRIMARY KEY",
        "CALL pawl.pass(NULL, 'a')", "CALL pawl.pawl_fenced_write('a')", "CALL pawl.read_keys()", "SELECT pawl.pad('a', 1)",
        "SELECT pawl.mac('a', 'b', 'c')", "CALL pawl.refuse('stale-token', '')", "SELECT pawl.is_signed('a')",
        "CALL pawl.pawl_guard('shop', 'orders', 'mine')", "DROP PROCEDURE pawl.pawl_fence", "DROP PROCEDURE pawl.pass",
        "CREATE OR REPLACE PROCEDURE pawl.pass(a TEXT, b TEXT) SELECT 1", "CREATE FUNCTION pawl.mine() RETURNS INT RETURN 1",
        "ALTER PROCEDURE pawl.pawl_fence SQL SECURITY INVOKER", "DROP TRIGGER pawl_update_orders", "DROP DATABASE pawl",
        "CREATE TRIGGER mine BEFORE UPDATE ON pawl.marks FOR EACH ROW SET NEW.token = 1", "SET ROLE pawl_owner", "SELECT * FROM mysql.proc",
        "SET GLOBAL innodb_rollback_on_timeout = 0", "ALTER TABLE orders ENGINE = MyISAM", "DROP TABLE orders", "SET sql_log_bin = 0",
        "GRANT SELECT ON pawl.keys TO shop_app@localhost", "CREATE DEFINER = pawl_owner@localhost VIEW mine AS SELECT * FROM pawl.keys",
        "HANDLER pawl.keys OPEN", "LOAD DATA INFILE '/etc/passwd' INTO TABLE pawl.keys", "FLUSH TABLES pawl.marks",
        "CREATE PROCEDURE mine() SQL SECURITY DEFINER SELECT * FROM pawl.keys",
    )
    for statement in attempts:
        error = one.error(statement)
        check(error.state in (DENIED, "28000", "HY000", "OP000"), f"{statement}: {error}")
        check(re.search("denied|Access|Invalid role|read only|SUPER", error.message), f"{statement}: {error}")
    for text in one("SHOW CREATE PROCEDURE pawl.pawl_fence"):
        check("pass" not in str(text), "the body of the fence is shown")
    check_equal(order.mark(), (1, 1))
    check_equal(fenced(one, order.fence(2)), None)
    check_equal(fenced(one, order.fence(1)), STALE)


@shop_test
def nobody_logs_in_as_the_owner():
    for user in ("pawl_owner",):
        try:
            SHOP_DB.server.client("-e", "SELECT 1", user=user)
        except RuntimeError as error:
            check(re.search("ERROR (1045|4151)", str(error)), str(error))
        else:
            raise AssertionError(f"{user} got in")


@shop_test
def settings_of_the_session_change_nothing(order, one):
    check_equal(fenced(one, order.fence(34)), None)
    for setting in ("sql_mode = ''", "sql_mode = 'ANSI,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE,PAD_CHAR_TO_FULL_LENGTH'",
                    "sql_mode = 'ORACLE'", "NAMES latin1", "NAMES utf8mb4 COLLATE utf8mb4_general_ci", "sql_select_limit = 0",
                    "default_regex_flags = 'EXTENDED,MULTILINE'", "check_constraint_checks = 0", "unique_checks = 0", "unique_checks = 1", "foreign_key_checks = 0",
                    "sql_safe_updates = 1", "sql_auto_is_null = 1", "collation_connection = 'ucs2_general_ci'", "tx_isolation = 'READ-UNCOMMITTED'",
                    "old_mode = ''", "max_sp_recursion_depth = 0", "div_precision_increment = 0"):
        one(f"SET {setting}")
        begin(one, isolation="REPEATABLE READ")
        check_equal(state_of(one, order.fence(33)), STALE, setting)
        check_equal(state_of(one, call(signed_token(Keys("k1"), order.lease, 99, 1), order.lease)), SIGNATURE, setting)
        check_equal(state_of(one, order.set("unfenced")), REQUIRED, setting)
        check_equal(state_of(one, order.fence(34)), None, setting)
        one("ROLLBACK")
        one("SET sql_mode = DEFAULT")
    check_equal((order.mark(), order.state()), ((1, 34), "new"))


@shop_test
def under_locked_tables_the_fence_is_not_passed_over():
    SHOP_DB.admin("GRANT LOCK TABLES ON shop.* TO shop_app@localhost")
    order, one = Order(), SHOP_DB.session()
    one("LOCK TABLES orders WRITE")
    check_equal(state_of(one, order.set("x")), REQUIRED)
    check(state_of(one, order.fence(34)) is not None, "a fence passed under LOCK TABLES")
    one(remember(order.token(34)))
    one(order.set("34"))
    one("UNLOCK TABLES")
    check_equal((order.mark(), order.state()), ((1, 34), "34"))


main(SHOP_DB.close)
