-- Up Migration

-- Records of the audit stay append-only, with one exception: the erasure of a person takes the
-- person's data out of the members and the target of a record. It says so for its transaction, and
-- appends a record of its own.
CREATE OR REPLACE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND OLD.at < now() - interval '365 days' THEN
    RETURN OLD;
  END IF;
  IF TG_OP = 'UPDATE' AND current_setting('carillon.erases_person', true) = 'on'
     AND to_jsonb(NEW) - '{before,after,target}'::text[] = to_jsonb(OLD) - '{before,after,target}'::text[] THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'the audit is append-only';
END $$;

-- Down Migration

CREATE OR REPLACE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND OLD.at < now() - interval '365 days' THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'the audit is append-only';
END $$;
