/** What stands where a record should: its bytes, or why it cannot be read. */
export interface RawRecord {
  /** Line of the file on which it begins, from 1. */
  line: number;
  bytes?: Buffer;
  problem?: string;
}

/** Cuts a stream of bytes into records. */
export interface Splitter {
  /** The records that end in this chunk. */
  push(chunk: Buffer): RawRecord[];
  /** What is left at the end of the file. */
  end(): RawRecord[];
}

/** Far above what a user or an installation may hold; nothing longer is ever in memory. */
export const maxRecordBytes = 4 * 1024 * 1024;
const tooLong = `This record is longer than ${maxRecordBytes / 1024 / 1024} MB.`;

const newline = 10;
const isBlank = (byte: number): boolean => byte === 32 || byte === 9 || byte === newline || byte === 13;

/** A part of the file that may come in several chunks, up to the limit. */
class Part {
  #parts: Buffer[] = [];
  #bytes = 0;

  add(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > maxRecordBytes) this.#parts = [];
    else if (part.length > 0) this.#parts.push(part);
  }

  take(line: number): RawRecord {
    const [first, ...more] = this.#parts;
    // Nearly all records lie in one chunk: those need no copy.
    const bytes = first && more.length === 0 ? first : Buffer.concat(this.#parts);
    const record = this.#bytes > maxRecordBytes ? { line, problem: tooLong } : { line, bytes };
    this.#parts = [];
    this.#bytes = 0;
    return record;
  }
}

/** JSON lines. Blank lines are none, and the first one may be the export's own heading (`#filetype:…`). */
export class LineSplitter implements Splitter {
  readonly #part = new Part();
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
    const isHeading = this.#line === 1 && bytes?.[0] === '#'.charCodeAt(0);
    return isHeading || bytes?.every(isBlank) ? [] : [record];
  }
}

const [quote, backslash, comma] = [34, 92, 44];
const [openBracket, closeBracket, openBrace, closeBrace] = [91, 93, 123, 125];

/** The elements of a JSON array, which may be the `results` of a dictionary; what follows the array is left. */
export class ElementSplitter implements Splitter {
  readonly #part = new Part();
  #line = 1;
  /** Line of the element that is being read; 0 between elements. */
  #begunOn = 0;
  #depth = 0;
  #isInText = false;
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
      } else if (this.#begunOn === 0) {
        from = at;
        this.#begin(byte);
      } else if (this.#isEnd(byte)) {
        records.push(this.#finish(chunk.subarray(from, at)));
        if (byte === closeBracket) this.#state = 'after';
      }
    }
    if (this.#begunOn > 0) this.#part.add(chunk.subarray(from));
    return records;
  }

  end(): RawRecord[] {
    if (this.#state === 'after') return [];
    const line = this.#begunOn || this.#line;
    return [{ line, problem: 'The file ends before its list does; what follows this line was not read.' }];
  }

  #begin(byte: number): void {
    if (byte === closeBracket) this.#state = 'after';
    if (isBlank(byte) || byte === comma || byte === closeBracket) return;
    this.#begunOn = this.#line;
    this.#isEnd(byte);
  }

  #finish(rest: Buffer): RawRecord {
    this.#part.add(rest);
    const record = this.#part.take(this.#begunOn);
    this.#begunOn = 0;
    return record;
  }

  /** Takes one byte of an element; true for the one behind its last. */
  #isEnd(byte: number): boolean {
    if (this.#isInText) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === backslash) this.#isEscaped = true;
      else if (byte === quote) this.#isInText = false;
      return false;
    }
    if (this.#depth === 0 && (byte === comma || byte === closeBracket)) return true;
    if (byte === quote) this.#isInText = true;
    else if (byte === openBrace || byte === openBracket) this.#depth += 1;
    else if (byte === closeBrace || byte === closeBracket) this.#depth = Math.max(0, this.#depth - 1);
    return false;
  }
}

/** As much of a file as its form is told by. */
const headBytes = 1024;

/** The splitter for a file that begins so: a list, a dictionary of `results`, else JSON lines. */
export function splitterFor(head: Buffer): Splitter {
  const text = head
    .subarray(0, headBytes)
    .toString('utf8')
    .replace(/^\uFEFF/, '');
  return /^\s*(\[|\{\s*"results"\s*:\s*\[)/.test(text) ? new ElementSplitter() : new LineSplitter();
}

/** Cuts chunks into records, those of a chunk together. */
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
