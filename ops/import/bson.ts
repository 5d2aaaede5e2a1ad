/**
 * BSON backups of LeanCloud: `<Class>.<random>.bson.gz`, documents one after the other. How
 * they hold dates and pointers is not published, so each known form is read. A document becomes the
 * record that the JSON export has for it.
 */
import { Binary, BSONError, DBRef, Decimal128, deserialize, Long, ObjectId } from 'bson';
import { refuse } from '../../shared/domain/errors/errors.ts';
import type { Json, JsonObject } from '../../shared/domain/json.ts';
import { isMemberName } from '../../shared/domain/objects/typed-values.ts';
import { say } from '../cli/language.ts';
import type { RawRecord, Splitter } from './splitter.ts';

/** Size limit of a document, as in MongoDB. */
export const maxDocumentBytes = 16 * 1024 * 1024;
/** Length of the smallest document: its length and a zero byte. */
const minDocumentBytes = 5;
const lengthBytes = 4;

/** Splits a stream of BSON documents. `line` of a record is the number of its document, from 1. */
export class DocumentSplitter implements Splitter {
  #parts: Buffer[] = [];
  #bytes = 0;
  #number = 1;
  #isBroken = false;

  push(chunk: Buffer): RawRecord[] {
    if (this.#isBroken) return [];
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    const records: RawRecord[] = [];
    while (this.#bytes >= lengthBytes) {
      const length = this.#peekLength();
      if (length < minDocumentBytes || length > maxDocumentBytes) {
        this.#isBroken = true;
        records.push({ line: this.#number, message: this.#wrongLength(length) });
        this.#drop();
        break;
      }
      if (this.#bytes < length) break;
      records.push({ line: this.#number, bytes: this.#take(length) });
      this.#number += 1;
    }
    return records;
  }

  end(): RawRecord[] {
    if (this.#isBroken || this.#bytes === 0) return [];
    const message = say('The file ends in the middle of a BSON document.');
    return [{ line: this.#number, message }];
  }

  #wrongLength(length: number): string {
    return length > maxDocumentBytes
      ? say('This BSON document is longer than {megabytes} MB; what follows was not read.', {
          megabytes: maxDocumentBytes / 1024 / 1024,
        })
      : say('This is no BSON document; what follows was not read. Take the JSON export instead.');
  }

  #peekLength(): number {
    const [first] = this.#parts;
    if (first && first.length >= lengthBytes) return first.readInt32LE(0);
    this.#parts = [Buffer.concat(this.#parts)];
    return this.#parts[0]?.readInt32LE(0) ?? 0;
  }

  #take(length: number): Buffer {
    const [first] = this.#parts;
    const all = first && first.length >= length ? first : Buffer.concat(this.#parts);
    const rest = first === all ? this.#parts.slice(1) : [];
    const left = all.subarray(length);
    this.#parts = left.length > 0 ? [left, ...rest] : rest;
    this.#bytes -= length;
    return all.subarray(0, length);
  }

  #drop(): void {
    this.#parts = [];
    this.#bytes = 0;
  }
}

/** Members in which another server than LeanCloud keeps access rights. */
const otherRights = ['_rperm', '_wperm', '_acl'];

/**
 * Reads a document as a record of the JSON export. Throws a refusal that names the member but
 * quotes no value.
 */
export function parseDocument(bytes: Buffer): JsonObject {
  try {
    // A pattern of MongoDB may be invalid in JavaScript, so it is not compiled.
    return recordOf(
      deserialize(bytes, { promoteLongs: false, promoteBuffers: false, bsonRegExp: true }),
    );
  } catch (error) {
    if (!(error instanceof BSONError || error instanceof RangeError || error instanceof TypeError))
      throw error;
    throw refuse('malformedJson', say('This BSON document is damaged: take the JSON export.'));
  }
}

function recordOf(document: Record<string, unknown>): JsonObject {
  const rights = otherRights.find((name) => name in document);
  if (rights !== undefined)
    throw refuse(
      'incorrectType',
      say('It has {name}, which is not of LeanCloud: take the JSON export.', {
        name: rights,
      }),
    );
  const record: [string, Json][] = [];
  for (const [name, value] of Object.entries(document)) {
    if (name === '_id') record.push(['objectId', idIn(value)]);
    else if (name === 'createdAt' || name === 'updatedAt') record.push([name, timeIn(value)]);
    else if (name.startsWith('_p_')) record.push([name.slice(3), jsonOf(value, name)]);
    // Members that begin with `_` are the server's own.
    else if (!name.startsWith('_')) record.push([name, jsonOf(value, name)]);
  }
  return Object.fromEntries(record);
}

const idIn = (value: unknown): Json =>
  value instanceof ObjectId ? value.toHexString() : text(value);

const text = (value: unknown): Json => (typeof value === 'string' ? value : null);

/** Returns a time as ISO 8601: a date, milliseconds, or a text that is checked later. */
function timeIn(value: unknown): Json {
  const ms = Long.isLong(value) ? value.toNumber() : value;
  if (typeof ms === 'number' || ms instanceof Date) {
    const date = new Date(ms);
    if (!Number.isNaN(date.getTime())) return date.toISOString();
  }
  return jsonOf(value, 'createdAt');
}

/** Pointer as one text, as in `_User$6735d1a2c3f04b0012ab34cd`. */
const pointerText = /^([A-Za-z_][A-Za-z0-9_]{0,127})\$([A-Za-z0-9]{10,32})$/;

const pointerTo = (className: string, objectId: string): JsonObject => ({
  __type: 'Pointer',
  className,
  objectId,
});

/** Returns a value in the form of the REST API. `name` is the member of the record. */
function jsonOf(value: unknown, name: string): Json {
  if (value === undefined) return null;
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'string') {
    const [, className, objectId] = pointerText.exec(value) ?? [];
    return className !== undefined && objectId !== undefined
      ? pointerTo(className, objectId)
      : value;
  }
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return value;
    throw unreadable(name, String(value));
  }
  if (Array.isArray(value)) return value.map((one) => jsonOf(one, name));
  if (value instanceof Date) return { __type: 'Date', iso: isoOf(value, name) };
  if (Long.isLong(value)) return integerOf(value.toBigInt());
  if (value instanceof ObjectId) return value.toHexString();
  if (value instanceof DBRef) return pointerTo(value.collection, String(value.oid));
  if (value instanceof Binary) return { __type: 'Bytes', base64: value.toString('base64') };
  if (value instanceof Decimal128) return decimalOf(value, name);
  if (typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype)
    return objectOf(value, name);
  throw unreadable(name, kindOf(value));
}

/** Returns an object. `{"$ref", "$id"}` is a pointer, and the time of a Date may be a date. */
function objectOf(value: object, name: string): Json {
  const members = new Map<string, unknown>(Object.entries(value));
  const [ref, id] = [members.get('$ref'), members.get('$id')];
  if (typeof ref === 'string' && (typeof id === 'string' || id instanceof ObjectId))
    return pointerTo(ref, typeof id === 'string' ? id : id.toHexString());
  const iso = members.get('iso');
  if (members.get('__type') === 'Date' && iso instanceof Date)
    return { __type: 'Date', iso: isoOf(iso, name) };
  // Ids in a pointer may look like a pointer as text.
  const isTyped = typeof members.get('__type') === 'string';
  return Object.fromEntries(
    [...members].map(([inner, one]): [string, Json] => [
      inner,
      isTyped && typeof one === 'string' ? one : jsonOf(one, name),
    ]),
  );
}

const integerOf = (value: bigint): Json =>
  value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;

function decimalOf(value: Decimal128, name: string): Json {
  const exact = value.toString();
  if (/^-?\d{1,19}$/.test(exact)) return integerOf(BigInt(exact));
  if (/^-?\d+(\.\d+)?(E[+-]?\d+)?$/i.test(exact) && exact.length <= 17) return Number(exact);
  throw unreadable(name, 'Decimal128');
}

function isoOf(date: Date, name: string): string {
  if (Number.isNaN(date.getTime())) throw unreadable(name, 'Date');
  return date.toISOString();
}

const kindOf = (value: unknown): string =>
  typeof value === 'object' && value !== null && '_bsontype' in value
    ? String(value._bsontype).replace(/^BSON/, '')
    : typeof value === 'object' && value !== null
      ? value.constructor.name
      : typeof value;

const unreadable = (name: string, kind: string): Error =>
  refuse(
    'incorrectType',
    say('{name} has a value of the BSON type {kind}, which the JSON export does not have.', {
      name: isMemberName(name) || name.startsWith('_p_') ? name : '?',
      kind,
    }),
  );
