-- pawl.sql - the fence inside of PostgreSQL (tried on 15): check and write are one transaction.
--
--   psql -X -d DATABASE -f pawl.sql        as a superuser; again after an upgrade of Pawl: marks and keys stay
--
-- SELECT pawl.pawl_fence(fencing_token, lease) at the begin of a transaction, the trigger pawl.pawl_fenced_write() on
-- each table that a lease guards. README.md says how, docs/databases.md what that promises and what it does not.
--
-- Whoever calls may set search_path, make temporary tables, operators and casts of his own. So: everything is written
-- with its schema; operators come from pg_catalog, the only schema in which our functions look for them; the HMAC is
-- bound when this file runs; and what a row of a user's table contains is only touched with the user's own rights.
\set ON_ERROR_STOP on
\set QUIET on
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;

-- pawl_owner owns everything and logs in nowhere; who is a member of it can lower marks and read keys.
-- pawl_application may call the fence, and nothing else.
DO $roles$
DECLARE
    member name;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'pawl_owner') THEN
        CREATE ROLE pawl_owner NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'pawl_application') THEN
        CREATE ROLE pawl_application NOLOGIN;
    END IF;
    IF EXISTS (SELECT FROM pg_namespace WHERE nspname = 'pawl' AND nspowner <> 'pawl_owner'::regrole) THEN
        RAISE EXCEPTION 'there is a schema pawl that is not of pawl_owner; whoever owns it could replace the fence';
    END IF;
    SELECT r.rolname INTO member
      FROM pg_auth_members AS m JOIN pg_roles AS r ON r.oid = m.member
     WHERE m.roleid = 'pawl_owner'::regrole LIMIT 1;
    IF member IS NOT NULL THEN
        RAISE EXCEPTION 'the role % is a member of pawl_owner: it could lower marks and read keys', member
              USING HINT = format('REVOKE pawl_owner FROM %I', member);
    END IF;
END
$roles$;

CREATE SCHEMA IF NOT EXISTS pawl AUTHORIZATION pawl_owner;
REVOKE ALL ON SCHEMA pawl FROM PUBLIC;
-- Where it is already, it stays.
CREATE EXTENSION IF NOT EXISTS pgcrypto WITH SCHEMA pawl;

SET LOCAL ROLE pawl_owner;

CREATE TABLE IF NOT EXISTS pawl.keys (
    kid text COLLATE "C" PRIMARY KEY,
    secret bytea NOT NULL
);

-- Whose tokens are taken: the id of one lease store, named by pawl.pawl_store(). No row: nobody's.
CREATE TABLE IF NOT EXISTS pawl.store (
    sole boolean PRIMARY KEY DEFAULT true CHECK (sole),
    id text COLLATE "C" NOT NULL
);

-- A mark is never lowered and never forgotten. moved_by: the transaction that moved it last; so each one moves it
-- once, and REPEATABLE READ notices also a neighbour with the same token.
CREATE TABLE IF NOT EXISTS pawl.marks (
    lease text COLLATE "C" CONSTRAINT marks_pkey PRIMARY KEY,
    epoch bigint NOT NULL,
    token bigint NOT NULL,
    moved_by xid8 NOT NULL
) WITH (fillfactor = 50);
-- Each store has numbers of its own. '': marks from before tokens named their store; pawl_store() says whose they are.
ALTER TABLE pawl.marks ADD COLUMN IF NOT EXISTS store text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE pawl.marks DROP CONSTRAINT marks_pkey, ADD CONSTRAINT marks_pkey PRIMARY KEY (store, lease);

-- The lines of a key file on their way to pawl.keys. COPY into a plain table cannot fail at a line: it would show it.
CREATE UNLOGGED TABLE IF NOT EXISTS pawl.key_file (
    number bigint GENERATED ALWAYS AS IDENTITY,
    line text
);

-- No policy lets anybody but the owner at a row: pg_read_all_data and pg_write_all_data reach past GRANT.
ALTER TABLE pawl.store ENABLE ROW LEVEL SECURITY;
ALTER TABLE pawl.keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE pawl.marks ENABLE ROW LEVEL SECURITY;
ALTER TABLE pawl.key_file ENABLE ROW LEVEL SECURITY;

-- HMAC-SHA256. A body that is parsed here knows pgcrypto's function by its number, not by its name, and keeps it from
-- being dropped or replaced.
DO $mac$
BEGIN
    EXECUTE format($body$
        CREATE OR REPLACE FUNCTION pawl.mac(secret bytea, content bytea) RETURNS bytea
        LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN %s.hmac(content, secret, 'sha256'::text)
        $body$, (SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'pgcrypto'));
    -- RFC 4231, test case 2
    IF pawl.mac(convert_to('Jefe', 'UTF8'), convert_to('what do ya want for nothing?', 'UTF8'))
       IS DISTINCT FROM decode('5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843', 'hex') THEN
        RAISE EXCEPTION 'the function hmac() of pgcrypto does not compute HMAC-SHA256';
    END IF;
END
$mac$;

-- Ends the statement: SQLSTATE, "code: sentence", the facts as JSON in DETAIL, and in HINT what to do now. The codes
-- are those of api/problems.def.
CREATE OR REPLACE FUNCTION pawl.refuse(code text, sentence text, facts jsonb) RETURNS void
LANGUAGE plpgsql STABLE AS $$
DECLARE
    state text;
    hint text;
BEGIN
    SELECT p.state, p.hint INTO STRICT state, hint
      FROM (VALUES
        ('token-required', 'PW428', 'Acquire the lease and hand its fencing token over in this transaction.'),
        ('malformed-token', 'PW400', 'Hand over the Fencing-Token header exactly as the grant gave it.'),
        ('bad-signature', 'PW40S', 'The token was altered, or signed with a key that is not in pawl.keys.'),
        ('wrong-store', 'PW40T', 'Use a token of the store that this database belongs to (pawl.pawl_store).'),
        ('wrong-lease', 'PW40L', 'Acquire the lease that guards what you write.'),
        ('wrong-mode', 'PW40M', 'Only an exclusive hold may write. Acquire the lease with mode exclusive.'),
        ('stale-token', 'PW412', 'Your hold is over and a newer one has written. Stop; do not retry with this token.')
      ) AS p (code, state, hint)
     WHERE p.code = refuse.code;
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = code || ': ' || sentence, HINT = 'Nothing was changed. ' || hint,
          DETAIL = (jsonb_build_object('code', code) || facts)::text;
END
$$;

-- {signed part, token, lease, mode, epoch, kid, signature, store}, or null: not the one canonical text. The last character of
-- the signature carries two spare bits, which are zero. The pattern only says what is where, and lengths are counted
-- afterwards: one that counts or captures takes ten times as long.
CREATE OR REPLACE FUNCTION pawl.read_token(fencing_token text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    part text[];
    found text[];
BEGIN
    IF (fencing_token COLLATE "C" ~ ('^[1-9][0-9]*;lease="[A-Za-z0-9][A-Za-z0-9._:-]*";store="[A-Za-z0-9_-]+"'
            ';mode=(?:exclusive|shared|permits)'
            ';epoch=[1-9][0-9]*;hold="[A-Za-z0-9_-]+";kid="[A-Za-z0-9._-]+";sig=:[A-Za-z0-9+/]+[AEIMQUYcgkosw048]=:$'))
       IS NOT TRUE THEN
        RETURN NULL;
    END IF;
    part := string_to_array(fencing_token, ';');
    found := ARRAY[left(fencing_token, -1 - length(part[8])), part[1], split_part(part[2], '"', 2), substr(part[4], 6),
                   substr(part[5], 7), split_part(part[7], '"', 2), split_part(part[8], ':', 2), split_part(part[3], '"', 2)];
    IF length(found[2]) <= 15 AND length(found[3]) <= 128 AND length(found[5]) <= 15 AND length(found[6]) <= 32
       AND length(split_part(part[6], '"', 2)) BETWEEN 12 AND 16 AND length(found[7]) = 44 AND length(found[8]) = 24 THEN
        RETURN found;
    END IF;
    RETURN NULL;
END
$$;

-- Compared are MACs of the MACs: how long that takes tells nothing about the right one.
CREATE OR REPLACE FUNCTION pawl.is_signed(signed_part text, kid text, signature text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    key bytea := (SELECT k.secret FROM pawl.keys AS k WHERE k.kid = is_signed.kid);
BEGIN
    RETURN pawl.mac(key, pawl.mac(key, convert_to(signed_part, 'UTF8'))) = pawl.mac(key, decode(signature, 'base64'));
END
$$;

-- The store whose tokens are taken, until the transaction ends: who names another one waits for that. Under REPEATABLE
-- READ and SERIALIZABLE one that was named since the snapshot is an error (40001). Null: none.
CREATE OR REPLACE FUNCTION pawl.own_store() RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (SELECT s.id FROM pawl.store AS s WHERE s.sole FOR SHARE);
END
$$;

-- Takes the mark's row until the transaction ends, also when it need not move: an older one waits here, and is
-- refused by the mark that it finds then. Under REPEATABLE READ and SERIALIZABLE the INSERT itself fails (40001) when
-- somebody else has moved the mark since the snapshot.
DROP FUNCTION IF EXISTS pawl.raise_mark(text, bigint, bigint); -- as it was before tokens named their store
CREATE OR REPLACE FUNCTION pawl.raise_mark(store text, lease text, epoch bigint, token bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    mark pawl.marks;
BEGIN
    INSERT INTO pawl.marks AS m (store, lease, epoch, token, moved_by)
    VALUES (raise_mark.store, raise_mark.lease, raise_mark.epoch, raise_mark.token, pg_current_xact_id())
    ON CONFLICT ON CONSTRAINT marks_pkey DO UPDATE
       SET epoch = EXCLUDED.epoch, token = EXCLUDED.token, moved_by = EXCLUDED.moved_by
     WHERE (m.epoch, m.token) < (EXCLUDED.epoch, EXCLUDED.token)
        OR (m.epoch, m.token) = (EXCLUDED.epoch, EXCLUDED.token)
           AND (m.moved_by <> EXCLUDED.moved_by OR age(m.xmin) > 0); -- the moved_by of a restored mark is another server's
    IF FOUND THEN
        RETURN;
    END IF;
    -- The row is ours, and was not moved: by this very transaction before, or because the token is older.
    SELECT m.* INTO STRICT mark FROM pawl.marks AS m
     WHERE m.store = raise_mark.store AND m.lease = raise_mark.lease;
    IF (mark.epoch, mark.token) > (raise_mark.epoch, raise_mark.token) THEN
        PERFORM pawl.refuse('stale-token',
            format('token %s of epoch %s is older than %s of epoch %s, which was let through for %s',
                   raise_mark.token, raise_mark.epoch, mark.token, mark.epoch, lease),
            jsonb_build_object('lease', lease, 'presented_token', raise_mark.token, 'presented_epoch', raise_mark.epoch,
                               'mark', mark.token, 'mark_epoch', mark.epoch));
    END IF;
END
$$;

-- Returns the token's number when this transaction may write under the lease; raises otherwise. From then on, until
-- the transaction ends, no other one passes for the lease, and afterwards no older token does.
CREATE OR REPLACE FUNCTION pawl.pawl_fence(fencing_token text, lease text) RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE CALLED ON NULL INPUT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part text[];
    own text;
    facts jsonb := jsonb_build_object('lease', lease);
BEGIN
    IF (lease COLLATE "C" ~ '^[A-Za-z0-9][A-Za-z0-9._:-]*$' AND length(lease) <= 128) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
              MESSAGE = format('%L is no name of a lease', lease),
              HINT = 'A letter or digit, then up to 127 letters, digits, ".", "_", ":" and "-".';
    END IF;
    IF fencing_token IS NULL THEN
        PERFORM pawl.refuse('token-required', format('nothing was handed over for %s', lease), facts);
    END IF;
    part := pawl.read_token(fencing_token);
    IF part IS NULL THEN
        PERFORM pawl.refuse('malformed-token', 'this is not the text of a fencing token', facts);
    END IF;
    facts := facts || jsonb_build_object('presented_token', part[2]::bigint, 'presented_epoch', part[5]::bigint);
    IF pawl.is_signed(part[1], part[6], part[7]) IS NOT TRUE THEN
        PERFORM pawl.refuse('bad-signature', 'no key verifies this token', facts);
    END IF;
    own := pawl.own_store();
    IF own IS NULL THEN
        PERFORM pawl.refuse('wrong-store', 'nobody has named the store whose tokens are taken here', facts);
    ELSIF part[8] COLLATE "C" <> own THEN
        PERFORM pawl.refuse('wrong-store', format('the token is one of store %s, not of %s', part[8], own), facts);
    END IF;
    IF part[3] COLLATE "C" <> lease THEN
        PERFORM pawl.refuse('wrong-lease', format('the token is one of %s, not of %s', part[3], lease), facts);
    END IF;
    IF part[4] <> 'exclusive' THEN
        PERFORM pawl.refuse('wrong-mode', format('the hold is %s', part[4]), facts);
    END IF;
    PERFORM pawl.raise_mark(own, lease, part[5]::bigint, part[2]::bigint);
    PERFORM set_config('pawl.token', fencing_token, true); -- for the triggers, until the transaction ends
    RETURN part[2]::bigint;
END
$$;

-- The lease that guards a row: the template with the one {column} in it replaced by the row's value. Only types that
-- have one text each, whatever DateStyle or TimeZone are.
CREATE OR REPLACE FUNCTION pawl.lease_of(template text, guarded anyelement) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part text[] := regexp_match(template, '^([^{}]*)[{]([^{}]+)[}]([^{}]*)$');
    value text;
    type regtype;
BEGIN
    IF part IS NULL THEN
        RETURN template; -- what has braces all the same is no name of a lease
    END IF;
    EXECUTE format('SELECT pg_typeof(($1).%1$I), ($1).%1$I::text', part[2]) INTO type, value USING guarded;
    IF type NOT IN ('smallint', 'integer', 'bigint', 'text', 'varchar', 'uuid') THEN
        RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
              MESSAGE = format('the column %I is a %s', part[2], type),
              HINT = 'A lease is made of a smallint, integer, bigint, text, varchar or uuid.';
    END IF;
    RETURN part[1] || value || part[3];
END
$$;

-- A trigger with one argument, the lease: orders:all, or made of a column, orders:{id}. It fences again with each
-- write, in the very (sub)transaction of the write, so that the two stand and fall together.
--   AFTER INSERT OR UPDATE OR DELETE ... FOR EACH ROW; what other triggers made of the row is what counts
--   BEFORE TRUNCATE ... FOR EACH STATEMENT             refused if the lease is made of a column
--   BEFORE INSERT OR UPDATE OR DELETE ... FOR EACH STATEMENT, with a fixed lease: once, however many rows; not where
--                                                      the table has partitions, children or a parent
-- It runs with the rights of who writes: a cast or a type in the row may be his.
CREATE OR REPLACE FUNCTION pawl.pawl_fenced_write() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fencing_token text := nullif(current_setting('pawl.token', true), ''); -- '' is what SET LOCAL leaves behind
    before_lease text;
    after_lease text;
BEGIN
    IF TG_NARGS <> 1 OR (TG_LEVEL = 'ROW' AND TG_WHEN <> 'AFTER') THEN
        RAISE EXCEPTION 'the trigger % on % is not made as deploy/postgres/README.md says', TG_NAME, TG_RELID::regclass
              USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF TG_LEVEL = 'STATEMENT' THEN
        -- A statement that names a partition, a child or a parent writes these rows and does not run this trigger.
        IF TG_OP <> 'TRUNCATE' AND EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = TG_RELID OR i.inhparent = TG_RELID) THEN
            RAISE EXCEPTION 'the trigger % on % is passed over by statements that name a part of it; take one FOR EACH ROW', TG_NAME,
                  TG_RELID::regclass USING ERRCODE = 'object_not_in_prerequisite_state';
        END IF;
        PERFORM pawl.pawl_fence(fencing_token, TG_ARGV[0]);
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        before_lease := pawl.lease_of(TG_ARGV[0], OLD);
        PERFORM pawl.pawl_fence(fencing_token, before_lease);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        after_lease := pawl.lease_of(TG_ARGV[0], NEW);
        IF TG_OP = 'INSERT' OR after_lease IS DISTINCT FROM before_lease THEN
            PERFORM pawl.pawl_fence(fencing_token, after_lease);
        END IF;
    END IF;
    RETURN NULL;
END
$$;

-- From now on the tokens of this lease store are taken, and no other's; waits for the transactions that are fenced.
-- Marks stay: each store has its own.
CREATE OR REPLACE FUNCTION pawl.pawl_store(id text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (id COLLATE "C" ~ '^[A-Za-z0-9_-]{24}$') IS NOT TRUE THEN
        RAISE EXCEPTION '% is no id of a store: pawl store status says it', quote_nullable(id)
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Later fences queue behind this lock; as sharers of the row they would let this wait for ever.
    LOCK TABLE pawl.store IN EXCLUSIVE MODE;
    INSERT INTO pawl.store AS s (id) VALUES (pawl_store.id) ON CONFLICT (sole) DO UPDATE SET id = EXCLUDED.id;
    UPDATE pawl.marks AS m SET store = pawl_store.id WHERE m.store = '';
END
$$;

-- Takes the lines in pawl.key_file for all keys that there are. Their number. A complaint never quotes a line.
CREATE OR REPLACE FUNCTION pawl.read_keys() RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    file record;
    part text[];
    wrong text;
BEGIN
    DELETE FROM pawl.keys;
    FOR file IN SELECT f.line, row_number() OVER (ORDER BY f.number) AS number FROM pawl.key_file AS f ORDER BY f.number
    LOOP
        CONTINUE WHEN coalesce(file.line, '') = '' OR left(file.line, 1) = '#';
        part := regexp_match(file.line COLLATE "C", '^([A-Za-z0-9._-]{1,32}):((?:[A-Za-z0-9+/]{4})*'
                             '(?:[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)?)$');
        wrong := CASE
            WHEN part IS NULL THEN 'a key is written kid:base64'
            WHEN translate(encode(decode(part[2], 'base64'), 'base64'), chr(10), '') <> part[2]
                THEN 'the base64 has spare bits that are not zero'
            WHEN length(decode(part[2], 'base64')) NOT BETWEEN 16 AND 1024
                THEN 'the key is not 16 to 1,024 bytes long; pawl keygen makes one of 32'
            WHEN EXISTS (SELECT FROM pawl.keys AS k WHERE k.kid = part[1]) THEN 'this kid was given before'
        END;
        IF wrong IS NOT NULL THEN
            RAISE EXCEPTION 'line % of the key file: %', file.number, wrong USING ERRCODE = 'invalid_parameter_value';
        END IF;
        INSERT INTO pawl.keys (kid, secret) VALUES (part[1], decode(part[2], 'base64'));
    END LOOP;
    IF NOT EXISTS (SELECT FROM pawl.keys) THEN
        RAISE EXCEPTION 'there is no key in the key file' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    DELETE FROM pawl.key_file;
    RETURN (SELECT count(*) FROM pawl.keys);
END
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA pawl FROM PUBLIC, pawl_application;
REVOKE ALL ON FUNCTION pawl.mac(bytea, bytea), pawl.refuse(text, text, jsonb), pawl.read_token(text),
    pawl.is_signed(text, text, text), pawl.raise_mark(text, text, bigint, bigint),
    pawl.own_store(), pawl.pawl_store(text), pawl.pawl_fence(text, text),
    pawl.lease_of(text, anyelement), pawl.pawl_fenced_write(), pawl.read_keys() FROM PUBLIC;
GRANT USAGE ON SCHEMA pawl TO pawl_application;
GRANT EXECUTE ON FUNCTION pawl.pawl_fence(text, text), pawl.lease_of(text, anyelement), pawl.pawl_fenced_write()
   TO pawl_application;

COMMIT;
