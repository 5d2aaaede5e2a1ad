import { operatorMessage, Refusal } from '../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import { language } from '../cli/language.ts';
import { DocumentSplitter, parseDocument } from './bson.ts';
import type { ExportFile, OpenFile } from './files.ts';
import { idOf, parseRecord } from './record.ts';
import type { Tally } from './report.ts';
import { splitRecords, splitWith } from './splitter.ts';

/** Limits of a batch, which is one transaction. Memory holds one batch per connection plus one. */
const maxRows = 2000;
const maxBytes = 4 * 1024 * 1024;

export interface Row {
  line: number;
  objectId: string;
  /**
   * Hashes of the row's unique values. Batches with a common hash are written one after the other.
   * A hash collision only causes an unneeded wait.
   */
  keyHashes?: readonly number[];
}

export interface BatchSource<R extends Row> {
  file: ExportFile;
  opened: OpenFile;
  tally: Tally;
  read(record: JsonObject, line: number): R;
}

/**
 * Yields the records of a file as rows in file order, at most `maxRows` at a time. Counts invalid
 * records as refused in the tally. If an object id occurs twice in a batch, the first row counts.
 * If reading fails, yields the rows before the failure and then throws.
 */
export async function* batchesOf<R extends Row>(source: BatchSource<R>): AsyncGenerator<R[]> {
  const { file, opened, tally } = source;
  const counts = tally.of(file.className);
  let rows = new Map<string, R>();
  let bytes = 0;
  let fault: { error: unknown } | undefined;
  try {
    const all = file.isBson
      ? splitWith(new DocumentSplitter(), opened.chunks)
      : splitRecords(opened.chunks);
    for await (const records of all) {
      for (const record of records) {
        counts.read += 1;
        const row = readRow(source, record);
        if (!row) continue;
        bytes += record.bytes?.length ?? 0;
        if (rows.has(row.objectId)) counts.alreadyThere += 1;
        else rows.set(row.objectId, row);
        if (rows.size < maxRows && bytes < maxBytes) continue;
        yield [...rows.values()];
        rows = new Map();
        bytes = 0;
      }
      await tally.flush();
    }
  } catch (error) {
    fault = { error };
  }
  if (rows.size > 0) yield [...rows.values()];
  if (fault) throw fault.error;
}

interface Raw {
  line: number;
  bytes?: Buffer;
  message?: string;
}

function readRow<R extends Row>(
  { file, tally, read }: BatchSource<R>,
  { line, bytes, message }: Raw,
): R | undefined {
  let objectId: string | undefined;
  try {
    if (!bytes) throw new Refusal('tooLarge', message === undefined ? {} : { text: message });
    const record = file.isBson ? parseDocument(bytes) : parseRecord(bytes);
    objectId = idOf(record);
    return read(record, line);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const id = objectId === undefined ? {} : { objectId };
    tally.refuse(file.className, {
      file: file.path,
      line,
      ...id,
      error: operatorMessage(language(), error),
    });
    return undefined;
  }
}
