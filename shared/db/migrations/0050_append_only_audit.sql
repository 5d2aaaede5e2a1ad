-- Up Migration

-- Entries of the audit are written once. Only those are deleted that are older than a year; the cleaner keeps them longer.
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND OLD.at < now() - interval '365 days' THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION 'the audit is append-only';
END $$;
CREATE TRIGGER audit_row BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_is_append_only();
CREATE TRIGGER audit_all BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();

-- Down Migration

DROP TRIGGER audit_all ON audit;
DROP TRIGGER audit_row ON audit;
DROP FUNCTION audit_is_append_only();
