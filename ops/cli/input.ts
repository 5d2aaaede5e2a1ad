import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';
import { CommandFailure, UsageError } from './report.ts';

/** A JSON dictionary given as it is, or the file that holds it; `-` is standard input. */
export async function dictionaryOrFile(value: string): Promise<JsonObject> {
  if (value.trimStart().startsWith('{')) return toDictionary(value, 'the text given');
  return toDictionary((await readInput(value)).toString(), inputName(value));
}

/** Reads a file, or standard input for `-`: secrets never stand on a command line. Throws `CommandFailure`. */
export async function readInput(path: string): Promise<Buffer> {
  if (path === '-') return buffer(process.stdin);
  try {
    return await readFile(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new CommandFailure(`${path} cannot be read (${code}).`);
  }
}

/** Names an input in a sentence. */
export const inputName = (path: string): string => (path === '-' ? 'standard input' : path);

/** Parses a JSON dictionary. The parser's own message is left out: it quotes the text, which may be a secret. */
export function toDictionary(content: string, from: string): JsonObject {
  const value = parseJson(content);
  if (!isJsonObject(value)) throw new CommandFailure(`${from} holds no JSON dictionary.`);
  return value;
}

/** `key=value` pairs: a value is JSON, and what is no JSON is a text. Throws `UsageError`. */
export function parsePairs(pairs: string[]): Map<string, unknown> {
  const values = new Map<string, unknown>();
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1) throw new UsageError(`expected key=value in place of ${pair}`);
    const key = pair.slice(0, at);
    if (values.has(key)) throw new UsageError(`${key} is given twice`);
    const value = pair.slice(at + 1);
    values.set(key, parseJson(value) ?? (value === 'null' ? null : value));
  }
  return values;
}

function parseJson(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}

/** A whole number of at least `min`. Throws `UsageError` naming the option. */
export function wholeNumber(option: string, value: string, min = 0): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < min || value.trim() === '')
    throw new UsageError(`${option} expects a whole number of at least ${min}`);
  return number;
}
