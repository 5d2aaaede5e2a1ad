import { z } from 'zod';
import type { Selection } from '../../db/tables/selection.ts';
import { canonicalTime } from '../../domain/client-values.ts';
import { refuse } from '../../domain/errors/errors.ts';
import { type JsonObject, parseJson } from '../../domain/json.ts';
import { canonicalValue, isMemberName } from '../../domain/objects/typed-values.ts';
import type { Condition } from '../condition.ts';
import { parseWhere } from '../parse/where.ts';
import type { ClassSchema } from '../schema.ts';
import { Params } from '../sql/params.ts';
import { compileWhere } from '../sql/where.ts';
import { masterViewer } from '../viewer.ts';
import { type Keys, parseKeys } from './keys.ts';
import { parseLimit } from './page.ts';

/** Built-in members that a scan can sort by, and their columns. */
const builtIn = new Map<string, { column: string; type: 'text' | 'timestamptz' }>([
  ['objectId', { column: 'object_id', type: 'text' }],
  ['createdAt', { column: 'created_at', type: 'timestamptz' }],
  ['updatedAt', { column: 'updated_at', type: 'timestamptz' }],
]);

/** Maximum length of a custom member's JSON in a cursor, because cursors are sent in URLs. */
const maxValueLength = 1000;

/** Validity of a cursor (protocol/queries.md#scan). */
const cursorLifeMs = 10 * 60_000;

/** Position of the last row of a page. The id distinguishes rows with equal keys. */
const cursorSchema = z.object({
  key: z.string(),
  /** JSON if the key is a custom member. */
  value: z.string().max(maxValueLength),
  id: z.int().min(0),
  untilMs: z.number(),
});

/** Checked parameters of a scan. */
export interface ScanQuery {
  where: Condition;
  limit: number;
  keys: Keys | undefined;
  /** Sort key as sent, for example `-updatedAt`. */
  scanKey: string;
  /** Sort key without its sign. */
  key: string;
  isDescending: boolean;
  after: { value: string; id: number } | undefined;
}

/**
 * Parses `where`, `limit`, `keys`, `scan_key` and `cursor` (protocol/queries.md#scan). The key is
 * `objectId`, a time or a custom member. Throws as `parseWhere`, and 102 if the cursor is
 * malformed, expired or belongs to another scan.
 */
export function parseScan(
  query: Record<string, unknown>,
  cls: ClassSchema,
  { appId, nowMs }: { appId: string; nowMs: number },
): ScanQuery {
  const { scan_key: sent, cursor } = query;
  const scanKey = sent === undefined || sent === '' ? 'objectId' : sent;
  const key = typeof scanKey === 'string' ? scanKey.replace(/^-/, '') : '';
  const isOwn = isMemberName(key) && !cls.columns.has(key) && !cls.hidden?.has(key);
  if (typeof scanKey !== 'string' || (!builtIn.has(key) && !isOwn))
    throw refuse(
      'invalidQuery',
      `scan_key is ${[...builtIn.keys()].join(', ')} or a custom member.`,
    );
  return {
    where: parseWhere(query.where, cls, masterViewer(appId)),
    limit: parseLimit(query.limit, false),
    keys: parseKeys(query.keys),
    scanKey,
    key,
    isDescending: scanKey.startsWith('-'),
    after:
      cursor === undefined || cursor === ''
        ? undefined
        : parseCursor(cursor, { scanKey, key, nowMs }),
  };
}

function parseCursor(
  cursor: unknown,
  { scanKey, key, nowMs }: { scanKey: string; key: string; nowMs: number },
): { value: string; id: number } {
  const read = cursorSchema.safeParse(
    typeof cursor === 'string' ? decodeCursor(cursor) : undefined,
  );
  const isValid = read.success && read.data.key === scanKey && isValueOf(key, read.data.value);
  if (!isValid) throw refuse('invalidQuery', 'This is no cursor of this scan.');
  if (read.data.untilMs < nowMs)
    throw refuse('invalidQuery', 'This cursor has expired: begin the scan again.');
  return read.data;
}

/**
 * Returns whether PostgreSQL can compare a cursor's value with the key. The check is needed because
 * clients can forge cursors.
 */
function isValueOf(key: string, value: string): boolean {
  if (key === 'objectId') return !value.includes('\0');
  if (builtIn.has(key)) return canonicalTime(value) !== undefined;
  try {
    canonicalValue(parseJson(value));
    return true;
  } catch {
    return false;
  }
}

function decodeCursor(cursor: string): unknown {
  try {
    return parseJson(Buffer.from(cursor, 'base64url').toString());
  } catch {
    return undefined;
  }
}

/** Row of a scan. */
interface ScannedRow {
  id: number;
  objectId: string;
  createdAt: Date;
  updatedAt: Date;
  fields: JsonObject;
}

/**
 * Returns the cursor for the page after this row. Throws error 102 if the value of the key is too
 * long for a cursor.
 */
export function cursorAfter(row: ScannedRow, { scanKey, key }: ScanQuery, nowMs: number): string {
  const value = valueOfKey(row, key);
  if (value.length > maxValueLength)
    throw refuse('invalidQuery', 'scan_key: the values of this member are too long to scan by.');
  const next: z.infer<typeof cursorSchema> = {
    key: scanKey,
    value,
    id: row.id,
    untilMs: nowMs + cursorLifeMs,
  };
  return Buffer.from(JSON.stringify(next)).toString('base64url');
}

function valueOfKey({ objectId, createdAt, updatedAt, fields }: ScannedRow, key: string): string {
  if (key === 'objectId') return objectId;
  if (key === 'createdAt') return createdAt.toISOString();
  if (key === 'updatedAt') return updatedAt.toISOString();
  return JSON.stringify(Object.hasOwn(fields, key) ? fields[key] : null);
}

/**
 * Compiles a scan with one row more than the limit, to detect the last page. `$1` is the app id.
 */
export function compileScan(scan: ScanQuery, cls: ClassSchema, appId: string): Selection {
  const params = new Params([appId]);
  const { column, type } = builtIn.get(scan.key) ?? {
    // A missing member counts as null, which sorts first. jsonb defines the order of values of
    // different types.
    column: `coalesce(${cls.jsonColumn} -> ${params.add(scan.key)}::text, 'null'::jsonb)`,
    type: 'jsonb',
  };
  const [sign, direction] = scan.isDescending ? ['<', 'DESC'] : ['>', 'ASC'];
  const where = compileWhere(scan.where, cls, params);
  const after = scan.after
    ? `(${column}, id) ${sign} (${params.add(scan.after.value)}::${type}, ${params.add(scan.after.id)}::bigint)`
    : 'true';
  return {
    condition: `(${where} AND ${after})`,
    orderBy: `${column} ${direction}, id ${direction}`,
    values: params.values,
    conditionValues: params.values.length,
    limit: scan.limit + 1,
    skip: 0,
  };
}
