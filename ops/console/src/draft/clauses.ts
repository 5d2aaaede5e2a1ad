import { canonicalText, type JsonRecord, parseJsonText } from './json-text.ts';

/** Members of a body that name the devices of a push. */
const targetMembers = ['where', 'cql', 'channels', 'device_ids', 'device_type', 'vendor', 'device_profile'];

/** Returns the part of a body whose devices `POST …/audience` counts, also without each clause. */
export function targetOf(body: JsonRecord): JsonRecord {
  const members = Object.entries(body).filter(([name]) => targetMembers.includes(name));
  return { ...Object.fromEntries(members), clauses: true };
}

interface CountedClause {
  kind: string;
  text: string;
  without: number | null;
}

/** Returns the number of devices without a part of the condition, by the part as canonical text. */
export function withoutClauses(clauses: readonly CountedClause[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { kind, text, without } of clauses)
    if (kind === 'where' && without !== null) counts.set(canonicalText(parseJsonText(text)), without);
  return counts;
}
