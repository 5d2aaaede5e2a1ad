import { createReadStream } from 'node:fs';
import { open, readdir, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream';
import { constants, createGunzip, gunzipSync } from 'node:zlib';
import { CommandFailure, UsageError } from '../cli/report.ts';

/** Classes of the public service that have a home here, in the order in which they are imported: roles have users. */
export const importedClasses = [
  '_User',
  '_Installation',
  '_Role',
  '_Join:users:_Role',
  '_Join:roles:_Role',
] as const;
export type ImportedClass = (typeof importedClasses)[number];

export const isImportedClass = (name: string | undefined): name is ImportedClass =>
  importedClasses.some((known) => known === name);

export interface ExportFile {
  path: string;
  /** On disk. */
  bytes: number;
  isGzip: boolean;
  className: ImportedClass;
}

export interface Found {
  files: ExportFile[];
  /** What else was in the folders, and why it is left. */
  skipped: { path: string; reason: string }[];
}

const headBytes = 64 * 1024;
const dataFile = /\.(jsonl|ndjson|json)(\.gz)?$/i;

/**
 * The files to import, users first, memberships of roles last: those that are named, and those in the folders that are named. The class of a
 * file is what it says itself in its first line, else what its name begins with; `asked` is for those that tell
 * neither way. Throws `UsageError` for a named file of no class, `CommandFailure` for what cannot be read.
 */
export async function findFiles(paths: string[], asked: ImportedClass | undefined): Promise<Found> {
  const found: Found = { files: [], skipped: [] };
  const seen = new Set<string>();
  for (const given of paths) {
    const isFolder = (await orSentence(given, stat(given))).isDirectory();
    const inside = isFolder ? await orSentence(given, readdir(given)) : [];
    for (const path of isFolder ? inside.map((name) => join(given, name)) : [given]) {
      const real = await orSentence(path, realpath(path));
      if (seen.has(real)) continue;
      seen.add(real);
      const file = await orSentence(path, inspect(path, asked));
      if (typeof file !== 'string') found.files.push(file);
      else if (isFolder) found.skipped.push({ path, reason: file });
      else throw new UsageError(`${path}: ${file}`);
    }
  }
  const byName = (a: ExportFile, b: ExportFile) => a.path.localeCompare(b.path, 'en', { numeric: true });
  found.files.sort(
    (a, b) => importedClasses.indexOf(a.className) - importedClasses.indexOf(b.className) || byName(a, b),
  );
  return found;
}

/** What is known of a file before it is read, or why it is none of ours. */
async function inspect(path: string, asked: ImportedClass | undefined): Promise<ExportFile | string> {
  const about = await stat(path);
  if (!about.isFile()) return 'is no file';
  const start = await readStart(path);
  const isGzip = start[0] === 0x1f && start[1] === 0x8b;
  const told = classInHeading(isGzip ? unzipStart(start) : start);
  if (told === undefined && !dataFile.test(path)) return 'is no file of an export (.jsonl, .json, .gz)';
  const className = told ?? classInName(basename(path)) ?? asked;
  if (className === undefined)
    return 'does not say which class it holds: call it _User.jsonl, _Installation.jsonl or _Role.jsonl, or give --class';
  if (!isImportedClass(className))
    return `holds the class ${className.slice(0, 64)}, which has no place here`;
  return { path, bytes: about.size, isGzip, className };
}

async function readStart(path: string): Promise<Buffer> {
  const handle = await open(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(headBytes), 0, headBytes, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** A damaged file shows when it is read. */
function unzipStart(start: Buffer): Buffer {
  try {
    return gunzipSync(start, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: headBytes * 1100 });
  } catch {
    return Buffer.alloc(0);
  }
}

const heading = /^\uFEFF?#filetype:JSON-streaming\s+\{[^\n]*"class"\s*:\s*"([A-Za-z0-9_:]{1,128})"/;

const classInHeading = (start: Buffer): string | undefined =>
  heading.exec(start.subarray(0, 1024).toString('utf8'))?.[1];

/** `_User.0.jsonl`, `_User_all.json`; a file of columns (`_User_schema.json`) holds no users. No file system takes every colon. */
function classInName(name: string): string | undefined {
  const [, relation] = /^_Join(?:[:_-]|%3A)(users|roles)(?:[:_-]|%3A)_Role(?![A-Za-z0-9])/i.exec(name) ?? [];
  if (relation !== undefined) return `_Join:${relation.toLowerCase()}:_Role`;
  const [, className, rest = ''] = /^(_User|_Installation|_Role)(?![A-Za-z0-9])(.*)$/.exec(name) ?? [];
  return /^_schema\b/.test(rest) ? `${className}_schema` : className;
}

export interface OpenFile {
  chunks: AsyncIterable<Buffer>;
  /** Bytes of the file, as it is on disk, that were read so far. */
  bytesRead(): number;
}

/** Opens a file; what is packed is unpacked on the way. Reading fails where it is damaged. */
export function openFile({ path, isGzip }: ExportFile): OpenFile {
  const raw = createReadStream(path, { highWaterMark: 256 * 1024 });
  // Whoever reads the unpacked stream hears of the failure there.
  const chunks = isGzip ? pipeline(raw, createGunzip({ chunkSize: 256 * 1024 }), () => undefined) : raw;
  return { chunks, bytesRead: () => raw.bytesRead };
}

async function orSentence<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    throw new CommandFailure(`${path} cannot be read (${error.code}).`);
  }
}
