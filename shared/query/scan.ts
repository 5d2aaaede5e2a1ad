import { z } from 'zod';
import type { Selection } from '../db/tables/selection.ts';
import { refuse } from '../domain/errors.ts';
import { parseJson } from '../domain/json.ts';
import { canonicalTime } from '../domain/typed-values.ts';
import { compileWhere } from './compile.ts';
import type { ClassSchema } from './fields.ts';
import { type Keys, parseKeys } from './keys.ts';

import { limitOf } from './paging.ts';
import { Params } from './params.ts';
import { parseWhere } from './parse.ts';
import { masterReader } from './reader.ts';
import type { Condition } from './tree.ts';

/** Members by which all rows of a class can be gone through, and their columns. */
const scanKeys = {
  objectId: { column: 'object_id', type: 'text' },
  createdAt: { column: 'created_at', type: 'timestamptz' },
  updatedAt: { column: 'updated_at', type: 'timestamptz' },
} as const;
type ScanKey = keyof typeof scanKeys;

const isScanKey = (name: string): name is ScanKey => Object.hasOwn(scanKeys, name);

/** compat.md 3.1. */
const cursorLifeMs = 10 * 60_000;

/** The row behind which a scan goes on; the id decides between rows with the same key. */
const mark = z.object({
  key: z.string(),
  value: z.string().max(64),
  id: z.int().min(0),
  untilMs: z.number(),
});

/** The parameters of a scan, checked. */
export interface ScanQuery {
  where: Condition;
  limit: number;
  keys: Keys | undefined;
  /** As sent: `-updatedAt`. */
  scanKey: string;
  key: ScanKey;
  isDescending: boolean;
  after: { value: string; id: number } | undefined;
}

/**
 * Reads `where`, `limit`, `keys`, `scan_key` and `cursor` (compat.md 3.1 "Scan"). Throws 102, also for a cursor that is
 * none, has expired or is of another scan, and as `parseWhere`.
 */
export function parseScan(
  query: Record<string, unknown>,
  cls: ClassSchema,
  { appId, nowMs }: { appId: string; nowMs: number },
): ScanQuery {
  const { scan_key: sent, cursor } = query;
  const scanKey = sent === undefined || sent === '' ? 'objectId' : sent;
  const key = typeof scanKey === 'string' ? scanKey.replace(/^-/, '') : '';
  if (typeof scanKey !== 'string' || !isScanKey(key))
    throw refuse('invalidQuery', `scan_key is one of ${Object.keys(scanKeys).join(', ')}.`);
  return {
    where: parseWhere(query.where, cls, masterReader(appId)),
    limit: limitOf(query.limit, false),
    keys: parseKeys(query.keys),
    scanKey,
    key,
    isDescending: scanKey.startsWith('-'),
    after: cursor === undefined || cursor === '' ? undefined : readCursor(cursor, { scanKey, key, nowMs }),
  };
}

function readCursor(
  cursor: unknown,
  { scanKey, key, nowMs }: { scanKey: string; key: ScanKey; nowMs: number },
): { value: string; id: number } {
  const read = mark.safeParse(typeof cursor === 'string' ? parse(cursor) : undefined);
  const isSound =
    read.success &&
    read.data.key === scanKey &&
    (key === 'objectId' || canonicalTime(read.data.value) !== undefined) &&
    !read.data.value.includes('\0');
  if (!isSound) throw refuse('invalidQuery', 'This is no cursor of this scan.');
  if (read.data.untilMs < nowMs)
    throw refuse('invalidQuery', 'This cursor has expired: begin the scan anew.');
  return read.data;
}

function parse(cursor: string): unknown {
  try {
    return parseJson(Buffer.from(cursor, 'base64url').toString());
  } catch {
    return undefined;
  }
}

/** What the next call of a scan sends to go on behind this row. */
export function cursorBehind(
  row: { id: number } & Record<ScanKey, string | Date>,
  { scanKey, key }: ScanQuery,
  nowMs: number,
): string {
  const value = row[key];
  const text = typeof value === 'string' ? value : value.toISOString();
  const next: z.infer<typeof mark> = { key: scanKey, value: text, id: row.id, untilMs: nowMs + cursorLifeMs };
  return Buffer.from(JSON.stringify(next)).toString('base64url');
}

/** One row more than was asked for, so that the last page is known as such. `$1` is the app id. */
export function compileScan(scan: ScanQuery, cls: ClassSchema, appId: string): Selection {
  const params = new Params([appId]);
  const { column, type } = scanKeys[scan.key];
  const [sign, direction] = scan.isDescending ? ['<', 'DESC'] : ['>', 'ASC'];
  const where = compileWhere(scan.where, cls, params);
  const behind = scan.after
    ? `(${column}, id) ${sign} (${params.add(scan.after.value)}::${type}, ${params.add(scan.after.id)}::bigint)`
    : 'true';
  return {
    condition: `(${where} AND ${behind})`,
    orderBy: `${column} ${direction}, id ${direction}`,
    values: params.values,
    conditionValues: params.values.length,
    limit: scan.limit + 1,
    skip: 0,
  };
}
