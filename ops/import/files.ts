import { createReadStream } from 'node:fs';
import { open, readdir, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream';
import { constants, createGunzip, gunzipSync } from 'node:zlib';
import { say } from '../cli/language.ts';
import { CommandFailure, UsageError } from '../cli/report.ts';

/**
 * Classes of LeanCloud that can be imported, in import order. Users come first, because
 * roles refer to users.
 */
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
  /** Size on disk. */
  bytes: number;
  isGzip: boolean;
  isBson: boolean;
  className: ImportedClass;
}

export interface FoundFiles {
  files: ExportFile[];
  /** Other files in the folders, and the reason why they are not imported. */
  skipped: { path: string; reason: string }[];
}

const headBytes = 64 * 1024;
const dataFile = /\.(jsonl|ndjson|json)(\.gz)?$/i;
const bsonFile = /\.bson(\.gz)?$/i;

/**
 * Finds the files to import in the given files and folders. Users come first, role memberships
 * last. The class of a file comes from its first line, otherwise from its name, otherwise from
 * `requestedClass`. Throws `UsageError` if a given file has no class, and `CommandFailure` if a
 * path cannot be read.
 */
export async function findFiles(
  paths: string[],
  requestedClass: ImportedClass | undefined,
): Promise<FoundFiles> {
  const found: FoundFiles = { files: [], skipped: [] };
  const seen = new Set<string>();
  for (const given of paths) {
    const isFolder = (await explainFileError(given, stat(given))).isDirectory();
    const inside = isFolder ? await explainFileError(given, readdir(given)) : [];
    for (const path of isFolder ? inside.map((name) => join(given, name)) : [given]) {
      const real = await explainFileError(path, isFolder ? targetOf(path) : realpath(path));
      if (real !== undefined && seen.has(real)) continue;
      seen.add(real ?? path);
      const file =
        real === undefined
          ? say('is no file')
          : await explainFileError(path, inspect(path, requestedClass));
      if (typeof file !== 'string') found.files.push(file);
      else if (isFolder) found.skipped.push({ path, reason: file });
      else throw new UsageError(`${path}: ${file}`);
    }
  }
  const byName = (a: ExportFile, b: ExportFile) =>
    a.path.localeCompare(b.path, 'en', { numeric: true });
  found.files.sort(
    (a, b) =>
      importedClasses.indexOf(a.className) - importedClasses.indexOf(b.className) || byName(a, b),
  );
  return found;
}

/** Returns the file that a path leads to. Returns undefined for a link without a target. */
const targetOf = (path: string): Promise<string | undefined> =>
  realpath(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });

/**
 * Returns what can be found out about a file before it is read, or the reason why it cannot be
 * imported.
 */
async function inspect(
  path: string,
  requestedClass: ImportedClass | undefined,
): Promise<ExportFile | string> {
  const about = await stat(path);
  if (!about.isFile()) return say('is no file');
  const start = await readStart(path);
  const isGzip = start[0] === 0x1f && start[1] === 0x8b;
  const name = basename(path);
  const isBson = bsonFile.test(name);
  const classInFile = isBson
    ? classOfBackup(name)
    : classInHeading(isGzip ? decompressStart(start) : start);
  if (classInFile === undefined && !dataFile.test(path))
    return say('is no file of an export (.jsonl, .json, .bson, .gz)');
  const className = classInFile ?? classInName(name) ?? requestedClass;
  if (className === undefined)
    return say(
      'does not say which class it holds: call it _User.jsonl, _Installation.jsonl or _Role.jsonl, or give --class',
    );
  if (!isImportedClass(className))
    return say('holds the class {name}, which has no place here', { name: className.slice(0, 64) });
  return { path, bytes: about.size, isGzip, isBson, className };
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

/**
 * Decompresses the start of a file. Returns an empty buffer for a damaged file, because a later
 * read reports the damage.
 */
function decompressStart(start: Buffer): Buffer {
  try {
    return gunzipSync(start, {
      finishFlush: constants.Z_SYNC_FLUSH,
      maxOutputLength: headBytes * 1100,
    });
  } catch {
    return Buffer.alloc(0);
  }
}

const heading = /^\uFEFF?#filetype:JSON-streaming\s+\{[^\n]*"class"\s*:\s*"([A-Za-z0-9_:]{1,128})"/;

const classInHeading = (start: Buffer): string | undefined =>
  heading.exec(start.subarray(0, 1024).toString('utf8'))?.[1];

/**
 * Returns the class in a file name such as `_User.0.jsonl` or `_User_all.json`. Ignores
 * `_User_schema.json`, which contains columns instead of users. Accepts `_`, `-` and `%3A` instead
 * of a colon, which some file systems do not allow.
 */
function classInName(name: string): string | undefined {
  const [, relation] =
    /^_Join(?:[:_-]|%3A)(users|roles)(?:[:_-]|%3A)_Role(?![A-Za-z0-9])/i.exec(name) ?? [];
  if (relation !== undefined) return `_Join:${relation.toLowerCase()}:_Role`;
  const [, className, rest = ''] =
    /^(_User|_Installation|_Role)(?![A-Za-z0-9])(.*)$/.exec(name) ?? [];
  return /^_schema\b/.test(rest) ? `${className}_schema` : className;
}

/** Returns the class of a backup, `<Class>.<random>.bson.gz`: its name up to the first dot. */
const classOfBackup = (name: string): string | undefined =>
  classInName(name) ?? /^[A-Za-z0-9_:-]{1,128}(?=\.)/.exec(name)?.[0];

export interface OpenFile {
  chunks: AsyncIterable<Buffer>;
  /** Returns the number of bytes read from disk so far. */
  bytesRead(): number;
}

/**
 * Opens a file and decompresses it during reading. Reading throws if the file is damaged, and an
 * `AbortError` after `stop`.
 */
export function openFile({ path, isGzip }: ExportFile, stop: AbortSignal): OpenFile {
  const raw = createReadStream(path, { highWaterMark: 256 * 1024, signal: stop });
  // The error is ignored here, because the reader of the decompressed stream receives it.
  const chunks = isGzip
    ? pipeline(raw, createGunzip({ chunkSize: 256 * 1024 }), () => undefined)
    : raw;
  return { chunks, bytesRead: () => raw.bytesRead };
}

async function explainFileError<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    throw new CommandFailure(
      say('{path} cannot be read ({code}).', { path, code: String(error.code) }),
    );
  }
}
