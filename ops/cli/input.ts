import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import type { z } from 'zod';
import { areDistinct, importedAppId, importedKeys } from '../../shared/domain/apps/app.ts';
import { operatorMessage, Refusal } from '../../shared/domain/errors/errors.ts';
import { issueText } from '../../shared/domain/errors/issue-text.ts';
import { isJsonObject, type JsonObject, parseExactly } from '../../shared/domain/json.ts';
import { language, recognised, say } from './language.ts';
import { CommandFailure, UsageError } from './report.ts';

/**
 * Reads a JSON object. The argument is the JSON itself, the path of a file, or `-` for standard
 * input.
 */
export async function dictionaryOrFile(value: string): Promise<JsonObject> {
  if (value.trimStart().startsWith('{')) return toDictionary(value, say('the text given'));
  return toDictionary((await readInput(value)).toString(), inputName(value));
}

/**
 * Reads a file, or standard input for `-`. Standard input keeps secrets off the command line.
 * Throws `CommandFailure`.
 */
export async function readInput(path: string): Promise<Buffer> {
  if (path === '-') return buffer(process.stdin);
  try {
    return await readFile(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new CommandFailure(say('{path} cannot be read ({code}).', { path, code }));
  }
}

/** Returns the name of an input for messages. */
export const inputName = (path: string): string => (path === '-' ? say('standard input') : path);

/**
 * Parses a JSON object. Error messages leave out the parser's message, because it quotes the text,
 * which may contain a secret.
 */
export function toDictionary(content: string, from: string): JsonObject {
  const value = parseJson(content);
  if (!isJsonObject(value))
    throw new CommandFailure(say('{from} holds no JSON dictionary.', { from }));
  return value;
}

/** Parses `key=value` pairs. A value that is not JSON is a string. Throws `UsageError`. */
export function parsePairs(pairs: string[]): Map<string, unknown> {
  const values = new Map<string, unknown>();
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1) throw new UsageError(say('expected key=value in place of {pair}', { pair }));
    const key = pair.slice(0, at);
    if (values.has(key)) throw new UsageError(say('{key} is given twice', { key }));
    const value = pair.slice(at + 1);
    values.set(key, parseJson(value) ?? (value === 'null' ? null : value));
  }
  return values;
}

function parseJson(content: string): unknown {
  try {
    return parseExactly(content);
  } catch (error) {
    if (error instanceof Refusal) throw new CommandFailure(operatorMessage(language(), error));
    return undefined;
  }
}

/** Parses an integer of at least `min`. Throws `UsageError` with the option's name. */
export function wholeNumber(option: string, value: string, min = 0): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < min || value.trim() === '')
    throw new UsageError(say('{option} expects a whole number of at least {min}', { option, min }));
  return number;
}

/**
 * Asks for confirmation of a deletion and reads the answer from standard input. Throws
 * `CommandFailure` unless the answer is `y` or `yes`. The end of the input counts as no.
 */
export async function confirm(question: string): Promise<void> {
  process.stderr.write(`${question} [y/N] `);
  const lines = createInterface({ input: process.stdin });
  const answer = await Promise.race([
    once(lines, 'line').then(([line]) => String(line)),
    once(lines, 'close').then(() => ''),
  ]);
  lines.close();
  if (!/^y(es)?$/i.test(answer.trim()))
    throw new CommandFailure(say('Nothing was deleted: answer y, or give --yes.'));
}

/** Existing keys of an app. The service generates the missing keys. */
export type ProvidedKeys = z.infer<typeof importedKeys>;

/** Validates the existing id of an app. Throws `UsageError`. */
export function parseAppId(value: string): string {
  const checked = importedAppId.safeParse(value);
  if (!checked.success)
    throw new UsageError(`--app-id ${recognised(checked.error.issues[0]?.message ?? '')}`);
  return checked.data;
}

/**
 * Reads the keys of an app from a JSON file, or from standard input for `-`. Keys are not options,
 * because other users of the machine can see a command line. Throws `CommandFailure` that names
 * members but quotes no values.
 */
export async function readProvidedKeys(path: string | undefined): Promise<ProvidedKeys> {
  if (path === undefined) return {};
  const from = inputName(path);
  const read = importedKeys.safeParse(toDictionary((await readInput(path)).toString(), from), {
    error: issueText,
  });
  if (!read.success) {
    const [issue] = read.error.issues;
    const message = [...(issue?.path ?? []), recognised(issue?.message ?? '')].join(' ');
    throw new CommandFailure(`${from}: ${message}.`);
  }
  if (!areDistinct(read.data))
    throw new CommandFailure(
      say('{from}: appKey, masterKey and hookKey must differ from each other.', { from }),
    );
  return read.data;
}
