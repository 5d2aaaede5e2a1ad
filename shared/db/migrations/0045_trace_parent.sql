-- Up Migration

-- Span of the call that sent a push, as `traceparent`: the spans of dispatchers continue it. Null without tracing.
ALTER TABLE notification ADD COLUMN trace_parent text;

-- Down Migration

ALTER TABLE notification DROP COLUMN trace_parent;
