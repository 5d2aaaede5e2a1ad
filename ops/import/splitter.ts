import { say } from '../cli/language.ts';

/** Bytes of a record, or the reason why it cannot be read. */
export interface RawRecord {
  /** Number of the line on which the record begins, from 1. */
  line: number;
  bytes?: Buffer;
  message?: string;
}

/** Splits a stream of bytes into records. */
export interface Splitter {
  /** Returns the records that end in this chunk. */
  push(chunk: Buffer): RawRecord[];
  /** Returns the records that remain at the end of the file. */
  end(): RawRecord[];
}

/** Size limit of a record in memory, far above the size of a valid user or installation. */
export const maxRecordBytes = 4 * 1024 * 1024;
const tooLong = () =>
  say('This record is longer than {megabytes} MB.', { megabytes: maxRecordBytes / 1024 / 1024 });

const newline = 10;
const isBlank = (byte: number): boolean =>
  byte === 32 || byte === 9 || byte === newline || byte === 13;

/** Collects the bytes of a record that may arrive in several chunks, up to the size limit. */
class RecordBuffer {
  #parts: Buffer[] = [];
  #bytes = 0;

  add(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > maxRecordBytes) this.#parts = [];
    else if (part.length > 0) this.#parts.push(part);
  }

  take(line: number): RawRecord {
    const [first, ...more] = this.#parts;
    // Avoids a copy in the common case of a record within one chunk.
    const bytes = first && more.length === 0 ? first : Buffer.concat(this.#parts);
    const record = this.#bytes > maxRecordBytes ? { line, message: tooLong() } : { line, bytes };
    this.#parts = [];
    this.#bytes = 0;
    return record;
  }
}

/**
 * Splits JSON lines. Ignores blank lines and the export's heading (`#filetype:…`) on the first
 * line.
 */
export class LineSplitter implements Splitter {
  readonly #part = new RecordBuffer();
  #line = 1;

  push(chunk: Buffer): RawRecord[] {
    const records: RawRecord[] = [];
    let from = 0;
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      this.#part.add(chunk.subarray(from, at));
      records.push(...this.#take());
      this.#line += 1;
      from = at + 1;
    }
    this.#part.add(chunk.subarray(from));
    return records;
  }

  end(): RawRecord[] {
    return this.#take();
  }

  #take(): RawRecord[] {
    const record = this.#part.take(this.#line);
    const { bytes } = record;
    // Some editors write a byte order mark before the heading.
    const isHeading = this.#line === 1 && /^\uFEFF?#/.test(String(bytes?.subarray(0, 4)));
    return isHeading || bytes?.every(isBlank) ? [] : [record];
  }
}

const [quote, backslash, comma] = [34, 92, 44];
const [openBracket, closeBracket, openBrace, closeBrace] = [91, 93, 123, 125];

/** Splits a JSON array, or the array `results` of an object. Ignores anything after the array. */
export class ElementSplitter implements Splitter {
  readonly #part = new RecordBuffer();
  #line = 1;
  /** Line of the current element, or 0 between elements. */
  #startLine = 0;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #state: 'before' | 'within' | 'after' = 'before';

  push(chunk: Buffer): RawRecord[] {
    const records: RawRecord[] = [];
    let from = 0;
    for (let at = 0; at < chunk.length && this.#state !== 'after'; at += 1) {
      const byte = chunk[at] ?? 0;
      if (byte === newline) this.#line += 1;
      if (this.#state === 'before') {
        if (byte === openBracket) this.#state = 'within';
      } else if (this.#startLine === 0) {
        from = at;
        this.#begin(byte);
      } else if (this.#isEnd(byte)) {
        records.push(this.#finish(chunk.subarray(from, at)));
        if (byte === closeBracket) this.#state = 'after';
      }
    }
    if (this.#startLine > 0) this.#part.add(chunk.subarray(from));
    return records;
  }

  end(): RawRecord[] {
    if (this.#state === 'after') return [];
    const line = this.#startLine || this.#line;
    return [
      {
        line,
        message: say('The file ends before its list does; what follows this line was not read.'),
      },
    ];
  }

  #begin(byte: number): void {
    if (byte === closeBracket) this.#state = 'after';
    if (isBlank(byte) || byte === comma || byte === closeBracket) return;
    this.#startLine = this.#line;
    this.#isEnd(byte);
  }

  #finish(rest: Buffer): RawRecord {
    this.#part.add(rest);
    const record = this.#part.take(this.#startLine);
    this.#startLine = 0;
    return record;
  }

  /** Processes one byte of an element. Returns true for the first byte after the element. */
  #isEnd(byte: number): boolean {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === backslash) this.#isEscaped = true;
      else if (byte === quote) this.#isInString = false;
      return false;
    }
    if (this.#depth === 0 && (byte === comma || byte === closeBracket)) return true;
    if (byte === quote) this.#isInString = true;
    else if (byte === openBrace || byte === openBracket) this.#depth += 1;
    else if (byte === closeBrace || byte === closeBracket)
      this.#depth = Math.max(0, this.#depth - 1);
    return false;
  }
}

/** Number of bytes at the start of a file that are enough to recognize its format. */
const headBytes = 1024;

/**
 * Returns the splitter for a file that starts with `head`: for an array, for an object with
 * `results`, otherwise for JSON lines.
 */
export function splitterFor(head: Buffer): Splitter {
  const text = head
    .subarray(0, headBytes)
    .toString('utf8')
    .replace(/^\uFEFF/, '');
  return /^\s*(\[|\{\s*"results"\s*:\s*\[)/.test(text) ? new ElementSplitter() : new LineSplitter();
}

/** Splits chunks into records with a splitter. Yields the records of each chunk together. */
export async function* splitWith(
  splitter: Splitter,
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<RawRecord[]> {
  for await (const chunk of chunks) yield splitter.push(chunk);
  yield splitter.end();
}

/** Splits chunks of JSON into records. Yields the records of each chunk together. */
export async function* splitRecords(chunks: AsyncIterable<Buffer>): AsyncGenerator<RawRecord[]> {
  let head: Buffer | undefined = Buffer.alloc(0);
  let splitter: Splitter = new LineSplitter();
  for await (const chunk of chunks) {
    if (!head) {
      yield splitter.push(chunk);
      continue;
    }
    head = Buffer.concat([head, chunk]);
    if (head.length < headBytes) continue;
    splitter = splitterFor(head);
    yield splitter.push(head);
    head = undefined;
  }
  if (head) {
    splitter = splitterFor(head);
    yield splitter.push(head);
  }
  yield splitter.end();
}
