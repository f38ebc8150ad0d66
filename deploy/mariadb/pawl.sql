-- pawl.sql - the fence inside of MariaDB (tried on 10.11): check and write are one transaction.
--
--   mariadb < pawl.sql        as an administrator; again after an upgrade of Pawl: marks and keys stay
--
-- CALL pawl.pawl_fence(fencing_token, lease) at the begin of a transaction, and CALL pawl.pawl_guard(...) once for each
-- table that a lease guards: it makes the triggers. README.md says how, docs/databases.md what that promises and what not.
--
-- sql_mode and character sets are kept with each routine, so those of the session that calls it do not matter.
SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin;
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO';

CREATE DATABASE IF NOT EXISTS pawl CHARACTER SET ascii COLLATE ascii_nopad_bin;

-- The account whose rights the routines have. Nobody can log in as it.
CREATE USER IF NOT EXISTS pawl_owner@localhost IDENTIFIED VIA mysql_native_password USING 'invalid' ACCOUNT LOCK;

-- A key as what HMAC begins its two hashes with (RFC 2104): the key, filled up to 64 bytes, XOR 0x36 and XOR 0x5c.
CREATE TABLE IF NOT EXISTS pawl.keys (
    kid VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin PRIMARY KEY,
    inner_pad BINARY(64) NOT NULL,
    outer_pad BINARY(64) NOT NULL
) ENGINE = InnoDB;

-- Whose tokens are taken: the id of one lease store, named by pawl.pawl_store(). No row: nobody's.
CREATE TABLE IF NOT EXISTS pawl.store (
    only_one TINYINT PRIMARY KEY,
    id VARCHAR(24) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL
) ENGINE = InnoDB;

-- A mark is never lowered and never forgotten. moves: how often it was fenced; so a snapshot can be told from now.
CREATE TABLE IF NOT EXISTS pawl.marks (
    lease VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin PRIMARY KEY,
    epoch BIGINT NOT NULL,
    token BIGINT NOT NULL,
    moves BIGINT UNSIGNED NOT NULL
) ENGINE = InnoDB;
-- Each store has numbers of its own. '': marks from before tokens named their store; pawl_store() says whose they are.
ALTER TABLE pawl.marks
    ADD COLUMN IF NOT EXISTS store VARCHAR(24) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL DEFAULT '',
    DROP PRIMARY KEY, ADD PRIMARY KEY (store, lease);

-- The lines of a key file on their way to pawl.keys.
CREATE TABLE IF NOT EXISTS pawl.key_file (
    number BIGINT AUTO_INCREMENT PRIMARY KEY,
    line VARBINARY(2048)
) ENGINE = InnoDB;

GRANT SELECT ON pawl.keys TO pawl_owner@localhost;
GRANT SELECT, INSERT, UPDATE ON pawl.store TO pawl_owner@localhost;
GRANT SELECT, INSERT, UPDATE ON pawl.marks TO pawl_owner@localhost;
GRANT EXECUTE ON pawl.* TO pawl_owner@localhost;

DELIMITER //

-- The key XOR one byte, again and again. MariaDB has XOR for numbers only.
CREATE OR REPLACE DEFINER = pawl_owner@localhost FUNCTION pawl.pad(secret VARBINARY(1024), flip TINYINT UNSIGNED)
RETURNS BINARY(64) DETERMINISTIC NO SQL
BEGIN
    DECLARE filled VARBINARY(1024) DEFAULT IF(LENGTH(secret) > 64, UNHEX(SHA2(secret, 256)), secret);
    DECLARE made VARCHAR(128) CHARACTER SET ascii DEFAULT '';
    DECLARE i INT DEFAULT 1;
    SET filled = RPAD(filled, 64, X'00');
    WHILE i <= 64 DO
        SET made = CONCAT(made, LPAD(HEX(ORD(SUBSTRING(filled, i, 1)) ^ flip), 2, '0'));
        SET i = i + 1;
    END WHILE;
    RETURN UNHEX(made);
END //

-- HMAC-SHA256.
CREATE OR REPLACE DEFINER = pawl_owner@localhost
FUNCTION pawl.mac(inner_pad BINARY(64), outer_pad BINARY(64), content VARBINARY(1024))
RETURNS BINARY(32) DETERMINISTIC NO SQL
RETURN UNHEX(SHA2(CONCAT(outer_pad, UNHEX(SHA2(CONCAT(inner_pad, content), 256))), 256)) //

-- Ends the statement with the SQLSTATE of the code and "code: sentence. What to do now." The transaction lives on: that
-- is how MariaDB is. The codes are those of api/problems.def.
CREATE OR REPLACE DEFINER = pawl_owner@localhost PROCEDURE pawl.refuse(code VARCHAR(20), sentence VARCHAR(400))
NO SQL
BEGIN
    DECLARE told VARCHAR(512) DEFAULT CONCAT(code, ': ', sentence);
    CASE code
    WHEN 'token-required' THEN
        SET told = CONCAT(told, '. ROLLBACK; acquire the lease and hand its token over.');
        SIGNAL SQLSTATE 'PW428' SET MESSAGE_TEXT = told;
    WHEN 'malformed-token' THEN
        SET told = CONCAT(told, '. ROLLBACK; hand over the Fencing-Token header as the grant gave it.');
        SIGNAL SQLSTATE 'PW400' SET MESSAGE_TEXT = told;
    WHEN 'bad-signature' THEN
        SET told = CONCAT(told, '. ROLLBACK; it was altered, or its key is not in pawl.keys.');
        SIGNAL SQLSTATE 'PW40S' SET MESSAGE_TEXT = told;
    WHEN 'wrong-store' THEN
        SET told = CONCAT(told, '. ROLLBACK; use a token of the store that this database belongs to (pawl.pawl_store).');
        SIGNAL SQLSTATE 'PW40T' SET MESSAGE_TEXT = told;
    WHEN 'wrong-lease' THEN
        SET told = CONCAT(told, '. ROLLBACK; acquire the lease that guards this.');
        SIGNAL SQLSTATE 'PW40L' SET MESSAGE_TEXT = told;
    WHEN 'wrong-mode' THEN
        SET told = CONCAT(told, '. ROLLBACK; acquire it with mode exclusive.');
        SIGNAL SQLSTATE 'PW40M' SET MESSAGE_TEXT = told;
    WHEN 'stale-token' THEN
        SET told = CONCAT(told, '. ROLLBACK and stop: your hold is over.');
        SIGNAL SQLSTATE 'PW412' SET MESSAGE_TEXT = told;
    END CASE;
END //

-- Whether this is the one canonical text. \\A, \\z and the letters in front of them: the session's default_regex_flags
-- mean nothing here, and a line feed at the end is not passed over.
CREATE OR REPLACE DEFINER = pawl_owner@localhost FUNCTION pawl.is_token(fencing_token LONGTEXT CHARACTER SET utf8mb4)
RETURNS BOOLEAN DETERMINISTIC NO SQL
RETURN COALESCE(LENGTH(fencing_token) <= 1024 AND fencing_token COLLATE utf8mb4_nopad_bin REGEXP CONCAT(
    '(?-imsx)\\A[1-9][0-9]{0,14};lease="[A-Za-z0-9][A-Za-z0-9._:-]{0,127}";store="[A-Za-z0-9_-]{24}"',
    ';mode=(?:exclusive|shared|permits)',
    ';epoch=[1-9][0-9]{0,14};hold="[A-Za-z0-9_-]{12,16}";kid="[A-Za-z0-9._-]{1,32}"',
    ';sig=:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=:\\z'), FALSE) //

-- Compared are MACs of the MACs: how long that takes tells nothing about the right one.
CREATE OR REPLACE DEFINER = pawl_owner@localhost FUNCTION pawl.is_signed(fencing_token VARCHAR(1024) CHARACTER SET ascii COLLATE ascii_nopad_bin)
RETURNS BOOLEAN READS SQL DATA
BEGIN
    DECLARE signed_part VARBINARY(1024) DEFAULT SUBSTRING_INDEX(fencing_token, ';sig=:', 1);
    DECLARE signature VARBINARY(32) DEFAULT FROM_BASE64(SUBSTRING_INDEX(SUBSTRING_INDEX(fencing_token, ';sig=:', -1), ':', 1));
    DECLARE token_kid VARCHAR(32) CHARACTER SET ascii COLLATE ascii_nopad_bin DEFAULT
        SUBSTRING_INDEX(SUBSTRING_INDEX(fencing_token, ';kid="', -1), '"', 1);
    RETURN COALESCE((
        SELECT pawl.mac(k.inner_pad, k.outer_pad, pawl.mac(k.inner_pad, k.outer_pad, signed_part))
             = pawl.mac(k.inner_pad, k.outer_pad, signature)
          FROM pawl.keys AS k WHERE k.kid = token_kid), FALSE);
END //

-- Lets the transaction that calls it write under the lease, or refuses. The row comes first: until it is ours nothing is
-- read without a lock, since that would make the snapshot in which the transaction goes on reading (InnoDB's REPEATABLE
-- READ) one from before the last holder's end.
CREATE OR REPLACE DEFINER = pawl_owner@localhost
PROCEDURE pawl.pass(fencing_token LONGTEXT CHARACTER SET utf8mb4, lease_name LONGTEXT CHARACTER SET utf8mb4)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE mark_epoch, mark_token, new_epoch, new_token BIGINT;
    DECLARE mark_moves, seen_moves BIGINT UNSIGNED;
    -- As the column is: with another collation the index would not be used, and every mark be locked.
    DECLARE wanted, token_lease, token_mode VARCHAR(128) CHARACTER SET ascii COLLATE ascii_nopad_bin;
    DECLARE own, token_store VARCHAR(24) CHARACTER SET ascii COLLATE ascii_nopad_bin;
    -- With both off InnoDB fills an empty table in bulk, and keeps a row of a statement that is refused later (tried). Before the first write.
    IF NOT @@unique_checks AND NOT @@foreign_key_checks THEN
        SIGNAL SQLSTATE '25000' SET MESSAGE_TEXT = 'unique_checks and foreign_key_checks are off: what is refused could not be undone';
    END IF;
    IF (lease_name COLLATE utf8mb4_nopad_bin REGEXP '(?-imsx)\\A[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\\z') IS NOT TRUE THEN
        SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = 'this is no name of a lease';
    END IF;
    IF fencing_token IS NULL THEN
        CALL pawl.refuse('token-required', CONCAT('nothing was handed over for ', lease_name));
    END IF;
    IF NOT pawl.is_token(fencing_token) THEN
        CALL pawl.refuse('malformed-token', 'this is not the text of a fencing token');
    END IF;
    SET wanted = lease_name;
    -- Until the transaction ends: who names another store waits for that.
    SELECT MAX(s.id) INTO own FROM pawl.store AS s WHERE s.only_one = 1 LOCK IN SHARE MODE;
    IF own IS NULL THEN
        CALL pawl.refuse('wrong-store', 'nobody has named the store whose tokens are taken here');
    END IF;
    INSERT INTO pawl.marks (store, lease, epoch, token, moves) VALUES (own, wanted, 0, 0, 0)
        ON DUPLICATE KEY UPDATE marks.moves = marks.moves;
    SELECT m.epoch, m.token, m.moves INTO mark_epoch, mark_token, mark_moves
      FROM pawl.marks AS m WHERE m.store = own AND m.lease = wanted FOR UPDATE;
    IF NOT pawl.is_signed(fencing_token) THEN
        CALL pawl.refuse('bad-signature', 'no key verifies this token');
    END IF;
    SET token_lease = SUBSTRING_INDEX(SUBSTRING_INDEX(fencing_token, '"', 2), '"', -1),
        token_store = SUBSTRING_INDEX(SUBSTRING_INDEX(fencing_token, '"', 4), '"', -1),
        token_mode = SUBSTRING_INDEX(SUBSTRING_INDEX(fencing_token, ';mode=', -1), ';', 1),
        new_token = SUBSTRING_INDEX(fencing_token, ';', 1),
        new_epoch = SUBSTRING_INDEX(SUBSTRING_INDEX(fencing_token, ';epoch=', -1), ';', 1);
    IF token_store <> own THEN
        CALL pawl.refuse('wrong-store', CONCAT('the token is one of store ', token_store, ', not of ', own));
    END IF;
    IF token_lease <> wanted THEN
        CALL pawl.refuse('wrong-lease', CONCAT('the token is one of ', token_lease, ', not of ', wanted));
    END IF;
    IF token_mode <> 'exclusive' THEN
        CALL pawl.refuse('wrong-mode', CONCAT('the hold is ', token_mode));
    END IF;
    IF new_epoch < mark_epoch OR new_epoch = mark_epoch AND new_token < mark_token THEN
        CALL pawl.refuse('stale-token', CONCAT('token ', new_token, ' of epoch ', new_epoch, ' is older than ', mark_token,
            ' of epoch ', mark_epoch, ', which was let through for ', wanted));
    END IF;
    SELECT MAX(m.moves) INTO seen_moves FROM pawl.marks AS m
     WHERE m.store = own AND m.lease = wanted;
    IF NOT seen_moves <=> mark_moves THEN
        SIGNAL SQLSTATE '40001'
           SET MESSAGE_TEXT = 'this transaction reads a snapshot from before the last fenced write; ROLLBACK and begin again';
    END IF;
    UPDATE pawl.marks AS m SET m.epoch = new_epoch, m.token = new_token, m.moves = m.moves + 1
     WHERE m.store = own AND m.lease = wanted;
END //

-- From here until the transaction ends no other one passes for the lease, and afterwards no older token does.
CREATE OR REPLACE DEFINER = pawl_owner@localhost
PROCEDURE pawl.pawl_fence(fencing_token LONGTEXT CHARACTER SET utf8mb4, lease LONGTEXT CHARACTER SET utf8mb4)
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    SET @pawl_token = NULL; -- who is refused and writes on has none
    IF @@autocommit AND NOT @@in_transaction THEN
        SIGNAL SQLSTATE '25000' SET MESSAGE_TEXT = 'there is no transaction to fence; START TRANSACTION first';
    END IF;
    CALL pawl.pass(fencing_token, lease);
    SET @pawl_token = fencing_token;
END //

-- What the triggers call, with each row: it fences again with the token in @pawl_token.
CREATE OR REPLACE DEFINER = pawl_owner@localhost PROCEDURE pawl.pawl_fenced_write(lease LONGTEXT CHARACTER SET utf8mb4)
MODIFIES SQL DATA SQL SECURITY DEFINER
CALL pawl.pass(@pawl_token, lease) //

-- The same before a row is there, whose lease may be known only then (AUTO_INCREMENT): the token is good for its own lease.
CREATE OR REPLACE DEFINER = pawl_owner@localhost PROCEDURE pawl.pawl_fenced_insert()
MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
    IF @pawl_token IS NULL THEN
        CALL pawl.refuse('token-required', 'nothing was handed over for this row');
    END IF;
    CALL pawl.pass(@pawl_token, IF(pawl.is_token(@pawl_token), SUBSTRING_INDEX(SUBSTRING_INDEX(@pawl_token, '"', 2), '"', -1), 'none'));
END //

-- Makes the five triggers of a table; template is a lease, or one with a column of the table in it: order:{id}. The
-- table must be one of InnoDB: another engine keeps what was refused.
-- In a function or a trigger MariaDB undoes nothing when a statement fails: if a handler there goes on, what the statement
-- has changed stays. So a row is fenced before it is changed, and behind that only what was not known by then.
CREATE OR REPLACE DEFINER = pawl_owner@localhost
PROCEDURE pawl.pawl_guard(guarded_schema VARCHAR(64) CHARACTER SET utf8mb4, guarded_table VARCHAR(64) CHARACTER SET utf8mb4,
                          template VARCHAR(200) CHARACTER SET utf8mb4)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE head, tail VARCHAR(200) CHARACTER SET utf8mb4;
    DECLARE col VARCHAR(64) CHARACTER SET utf8mb4;
    DECLARE place, old_lease, new_lease TEXT CHARACTER SET utf8mb4;
    DECLARE before_insert TEXT CHARACTER SET utf8mb4 DEFAULT 'pawl.pawl_fenced_insert()';
    IF (SELECT t.engine FROM information_schema.tables AS t
         WHERE t.table_schema = guarded_schema AND t.table_name = guarded_table) <=> 'InnoDB' THEN
        SET place = CONCAT('`', REPLACE(guarded_schema, '`', '``'), '`.`', REPLACE(guarded_table, '`', '``'), '`');
    ELSE
        SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = 'this is not a table of InnoDB: what is refused could not be undone';
    END IF;
    IF template LIKE '%{%' THEN
        SET head = SUBSTRING_INDEX(template, '{', 1), tail = SUBSTRING_INDEX(template, '}', -1);
        SET col = SUBSTRING_INDEX(SUBSTRING_INDEX(template, '{', -1), '}', 1);
        IF NOT template <=> CONCAT(head, '{', col, '}', tail) OR NOT EXISTS (
            SELECT * FROM information_schema.columns AS c
             WHERE c.table_schema = guarded_schema AND c.table_name = guarded_table AND c.column_name = col
               AND c.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'char', 'varchar', 'uuid')) THEN
            SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = 'a lease is made of one column, of an integer, char, varchar or uuid';
        END IF;
        SET col = REPLACE(col, '`', '``');
        SET old_lease = CONCAT('CONCAT(', QUOTE(head), ', OLD.`', col, '`, ', QUOTE(tail), ')');
        SET new_lease = CONCAT('CONCAT(', QUOTE(head), ', NEW.`', col, '`, ', QUOTE(tail), ')');
    ELSE
        SET old_lease = QUOTE(template), new_lease = QUOTE(template);
        SET before_insert = CONCAT('pawl.pawl_fenced_write(', new_lease, ')');
    END IF;
    EXECUTE IMMEDIATE CONCAT('CREATE OR REPLACE TRIGGER ', REPLACE(place, '`.`', '`.`pawl_preins_'), ' BEFORE INSERT ON ', place,
        ' FOR EACH ROW CALL ', before_insert);
    EXECUTE IMMEDIATE CONCAT('CREATE OR REPLACE TRIGGER ', REPLACE(place, '`.`', '`.`pawl_insert_'), ' AFTER INSERT ON ', place,
        ' FOR EACH ROW CALL pawl.pawl_fenced_write(', new_lease, ')');
    EXECUTE IMMEDIATE CONCAT('CREATE OR REPLACE TRIGGER ', REPLACE(place, '`.`', '`.`pawl_preupd_'), ' BEFORE UPDATE ON ', place,
        ' FOR EACH ROW CALL pawl.pawl_fenced_write(', old_lease, ')');
    EXECUTE IMMEDIATE CONCAT('CREATE OR REPLACE TRIGGER ', REPLACE(place, '`.`', '`.`pawl_update_'), ' AFTER UPDATE ON ', place,
        ' FOR EACH ROW IF NOT BINARY ', new_lease, ' <=> BINARY ', old_lease,
        ' THEN CALL pawl.pawl_fenced_write(', new_lease, '); END IF');
    EXECUTE IMMEDIATE CONCAT('CREATE OR REPLACE TRIGGER ', REPLACE(place, '`.`', '`.`pawl_delete_'), ' BEFORE DELETE ON ', place,
        ' FOR EACH ROW CALL pawl.pawl_fenced_write(', old_lease, ')');
END //

-- From now on the tokens of this lease store are taken, and no other's; waits for the transactions that are fenced.
-- Marks stay: each store has its own.
CREATE OR REPLACE DEFINER = pawl_owner@localhost PROCEDURE pawl.pawl_store(store_id VARCHAR(64) CHARACTER SET utf8mb4)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE waited BIGINT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;
    IF (store_id COLLATE utf8mb4_nopad_bin REGEXP '(?-imsx)\\A[A-Za-z0-9_-]{24}\\z') IS NOT TRUE THEN
        SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = 'this is no id of a store: pawl store status says it';
    END IF;
    START TRANSACTION;
    INSERT INTO pawl.store (only_one, id) VALUES (1, store_id) ON DUPLICATE KEY UPDATE store.id = store_id;
    -- XA PREPARE gives up the share of the store's row (tried), not the marks that were moved.
    SELECT COUNT(*) INTO waited FROM pawl.marks FOR UPDATE;
    UPDATE pawl.marks AS m SET m.store = store_id WHERE m.store = '';
    COMMIT;
END //

-- Takes the lines in pawl.key_file for all keys that there are. A complaint never quotes a line.
CREATE OR REPLACE DEFINER = pawl_owner@localhost PROCEDURE pawl.read_keys()
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE line_number INT DEFAULT 0;
    DECLARE wrong VARCHAR(200);
    DECLARE secret VARBINARY(2048);
    DECLARE told VARCHAR(300);
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        DELETE FROM pawl.key_file;
        RESIGNAL;
    END;
    START TRANSACTION;
    DELETE FROM pawl.keys;
    FOR file IN (SELECT f.line FROM pawl.key_file AS f ORDER BY f.number) DO
        SET line_number = line_number + 1;
        IF COALESCE(file.line, '') <> '' AND LEFT(file.line, 1) <> '#' THEN
            SET secret = NULL, wrong = NULL;
            -- FROM_BASE64() of what is none would be an error that tells more than it should.
            IF file.line REGEXP CONCAT('(?-imsx)\\A[A-Za-z0-9._-]{1,32}:(?:[A-Za-z0-9+/]{4})*',
                                       '(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)?\\z') THEN
                SET secret = FROM_BASE64(SUBSTRING_INDEX(file.line, ':', -1));
            END IF;
            SET wrong = CASE
                WHEN secret IS NULL THEN 'a key is written kid:base64'
                WHEN NOT REPLACE(TO_BASE64(secret), '\n', '') <=> CONVERT(SUBSTRING_INDEX(file.line, ':', -1) USING ascii)
                    THEN 'the base64 has spare bits that are not zero'
                WHEN LENGTH(secret) NOT BETWEEN 16 AND 1024
                    THEN 'the key is not 16 to 1,024 bytes long; pawl keygen makes one of 32'
                WHEN EXISTS (SELECT * FROM pawl.keys AS k WHERE k.kid = SUBSTRING_INDEX(file.line, ':', 1))
                    THEN 'this kid was given before'
            END;
            IF wrong IS NOT NULL THEN
                SET told = CONCAT('line ', line_number, ' of the key file: ', wrong);
                SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = told;
            END IF;
            INSERT INTO pawl.keys VALUES (SUBSTRING_INDEX(file.line, ':', 1), pawl.pad(secret, 0x36), pawl.pad(secret, 0x5c));
        END IF;
    END FOR;
    IF NOT EXISTS (SELECT * FROM pawl.keys) THEN
        SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = 'there is no key in the key file';
    END IF;
    DELETE FROM pawl.key_file;
    COMMIT;
END //

DELIMITER ;
