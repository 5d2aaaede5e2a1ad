import { type FSWatcher, watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { eventHooks, userHooks } from '../../shared/domain/functions.ts';

/** A file of the folder: what it is called by, and what it is. */
export interface FunctionFile {
  /** As the list of names has it: `hello`, `__before_save_for__User`. */
  name: string;
  path: string;
  kind: 'function' | 'before' | 'after' | 'login' | 'authData' | 'verified';
  /** For the hook and the master key only: `<name>.internal.js`. */
  isInternal: boolean;
}

/** Names of files are names of functions; those that begin with `_` or a dot are none, so that they can help others. */
const fileName = /^([A-Za-z][A-Za-z0-9_-]{0,99})(\.internal)?\.(?:js|mjs|ts)$/;
const hookFile = /^([A-Za-z_]+\.[A-Za-z]+)\.(?:js|mjs|ts)$/;

/** Files of `hooks/`: `_User.beforeSave.js`, `_User.onLogin.js`, `onVerified.sms.js`, … */
const hooks = new Map<string, Pick<FunctionFile, 'name' | 'kind'>>([
  ...Object.entries(userHooks).map(
    ([hook, name]) =>
      [`_User.${hook}`, { name, kind: hook.startsWith('before') ? 'before' : 'after' }] as const,
  ),
  ['_User.onLogin', { name: eventHooks.onLogin.name, kind: 'login' }],
  ['_User.onAuthData', { name: eventHooks.onAuthData.name, kind: 'authData' }],
  ['onVerified.sms', { name: eventHooks.onVerifiedSms.name, kind: 'verified' }],
  ['onVerified.email', { name: eventHooks.onVerifiedEmail.name, kind: 'verified' }],
]);

/** Finds the functions of a folder and the hooks of its `hooks/`; what it cannot use it names in `say`. */
export async function readFolder(
  dir: string,
  say: (line: string) => void,
): Promise<ReadonlyMap<string, FunctionFile>> {
  const found = new Map<string, FunctionFile>();
  const add = (file: FunctionFile) => {
    if (found.has(file.name)) say(`${file.path} is left out: there is another file for ${file.name}`);
    else found.set(file.name, file);
  };
  for (const { path, entry } of await filesIn(resolve(dir))) {
    const [, name, internal] = fileName.exec(entry) ?? [];
    if (name !== undefined) add({ name, path, kind: 'function', isInternal: internal !== undefined });
  }
  for (const { path, entry } of await filesIn(resolve(dir, 'hooks'))) {
    const hook = hooks.get(hookFile.exec(entry)?.[1] ?? '');
    if (hook) add({ ...hook, path, isInternal: true });
    else if (!/^[._]/.test(entry)) say(`${path} is left out: there is no such hook`);
  }
  return found;
}

async function filesIn(dir: string): Promise<{ path: string; entry: string }[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' && dir.endsWith('hooks')) return [];
    throw error;
  });
  return entries
    .filter((entry) => entry.isFile() || entry.isSymbolicLink())
    .map(({ name: entry }) => ({ path: join(dir, entry), entry }))
    .sort((a, b) => a.path.localeCompare(b.path));
}

/** Several writes of one save are one change. */
const quietMs = 100;

/** Calls `onChange` after something below the folder has changed and been left alone for a moment. */
export function watchFolder(dir: string, onChange: () => void, say: (line: string) => void): FSWatcher {
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(resolve(dir), { recursive: true }, () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, quietMs);
  });
  watcher.on('error', (error) => say(`changes are not seen until a restart: ${error.message}`));
  watcher.on('close', () => clearTimeout(timer));
  return watcher;
}
