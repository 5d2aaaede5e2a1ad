import { type FSWatcher, watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { eventHooks, userHooks } from '../../shared/domain/apps/functions.ts';

/** File of the functions folder, with the name and kind of its function. */
export interface FunctionFile {
  /** Name of the function, such as `hello` or `__before_save_for__User`. */
  name: string;
  path: string;
  kind: 'function' | 'before' | 'after' | 'login' | 'authData' | 'verified';
  /**
   * True if only callers with the hook key or the master key may call it. The file name is
   * `<name>.internal.js`.
   */
  isInternal: boolean;
}

/**
 * Pattern of function file names; the name of the file is the name of the function. Files that
 * start with `_` or a dot are helper modules.
 */
const fileName = /^([A-Za-z][A-Za-z0-9_-]{0,99})(\.internal)?\.(?:js|mjs|ts)$/;
const hookFile = /^([A-Za-z_]+\.[A-Za-z]+)\.(?:js|mjs|ts)$/;

/** Hook files: `_User.beforeSave.js`, `_User.onLogin.js`, `onVerified.sms.js`, … */
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

/** Finds the functions in a folder and the hooks in its `hooks/` folder. Logs each ignored file. */
export async function readFolder(
  dir: string,
  log: (line: string) => void,
): Promise<ReadonlyMap<string, FunctionFile>> {
  const found = new Map<string, FunctionFile>();
  const add = (file: FunctionFile) => {
    if (found.has(file.name))
      log(`${file.path} is ignored: there is another file for ${file.name}`);
    else found.set(file.name, file);
  };
  for (const { path, entry } of await filesIn(resolve(dir))) {
    const [, name, internal] = fileName.exec(entry) ?? [];
    if (name !== undefined)
      add({ name, path, kind: 'function', isInternal: internal !== undefined });
  }
  for (const { path, entry } of await filesIn(resolve(dir, 'hooks'))) {
    const hook = hooks.get(hookFile.exec(entry)?.[1] ?? '');
    if (hook) add({ ...hook, path, isInternal: true });
    else if (!/^[._]/.test(entry)) log(`${path} is ignored: there is no such hook`);
  }
  return found;
}

async function filesIn(dir: string): Promise<{ path: string; entry: string }[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' && dir.endsWith('hooks')) return [];
      throw error;
    },
  );
  return entries
    .filter((entry) => entry.isFile() || entry.isSymbolicLink())
    .map(({ name: entry }) => ({ path: join(dir, entry), entry }))
    .sort((a, b) => a.path.localeCompare(b.path));
}

/**
 * Delay before a reload. Editors write several times per save, so the reload waits until no file
 * has changed for this long.
 */
const quietMs = 100;

/**
 * Calls `onChange` after files below the folder have changed and then stayed unchanged for a
 * moment.
 */
export function watchFolder(
  dir: string,
  onChange: () => void,
  log: (line: string) => void,
): FSWatcher {
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(resolve(dir), { recursive: true }, () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, quietMs);
  });
  watcher.on('error', (error) => log(`changes are not seen until a restart: ${error.message}`));
  watcher.on('close', () => clearTimeout(timer));
  return watcher;
}
