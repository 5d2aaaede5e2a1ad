import type { z } from 'zod';
import { areDistinct, broughtAppId, broughtKeys } from '../../shared/domain/apps/app.ts';
import { issueText } from '../../shared/domain/errors/issue-text.ts';
import { inputName, readInput, toDictionary } from './input.ts';
import { recognised, say } from './language.ts';
import { CommandFailure, UsageError } from './report.ts';

/** Existing keys of an app; the service generates the missing ones. */
export type ProvidedKeys = z.infer<typeof broughtKeys>;

/** Checks the existing id of an app. Throws `UsageError`. */
export function parseAppId(value: string): string {
  const checked = broughtAppId.safeParse(value);
  if (!checked.success)
    throw new UsageError(`--app-id ${recognised(checked.error.issues[0]?.message ?? '')}`);
  return checked.data;
}

/**
 * Reads the keys of an app from a JSON object in a file, or from standard input for `-`: other users of the machine could
 * see keys on a command line. Throws `CommandFailure` that names members and quotes no value.
 */
export async function readProvidedKeys(path: string | undefined): Promise<ProvidedKeys> {
  if (path === undefined) return {};
  const from = inputName(path);
  const read = broughtKeys.safeParse(toDictionary((await readInput(path)).toString(), from), {
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
