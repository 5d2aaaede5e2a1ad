import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exampleOf, visibleCommands } from '../../../ops/cli/command.ts';
import { program } from '../../../ops/cli/program.ts';
import { operationOf } from '../../../ops/cli/row.ts';
import { operations } from '../../../ops/client/operations.ts';

/** Operations without a command, with the reason. */
const withoutCommand: Readonly<Record<string, string>> = {
  getKey: 'of the console, which shows keys one by one; `app show` shows them',
  resendAppPush: '`redrive` does it, and each recipient gets the push at most once',
  revealCaptcha: 'for tests only',
  startConsoleSession: 'a browser logs in with a cookie; a command has its token',
  getConsoleSession: 'of the cookie of a browser',
  endConsoleSession: 'of the cookie of a browser',
  streamEvents: 'a stream for pages; a command asks again',
  getLoginMethods: 'of the login page of the console',
  runDoctor: 'the command checks by itself, also while no service runs',
};

/**
 * Commands that were not declared with `row`, with what they do instead of or in addition to one
 * API call.
 */
const withoutRow: Readonly<Record<string, string>> = {
  up: 'a process',
  api: 'a process',
  dispatcher: 'a process',
  sandbox: 'a process',
  bench: 'a process',
  'console build': 'files',
  backup: 'files',
  'profile help': 'text',
  doctor: 'checks of this machine',
  'profile put': 'credentials from files',
  'profile stage': 'credentials from files',
  push: 'content and progress',
  redrive: 'many pushes',
  recall: 'waits',
  record: 'three views of a push',
  pushes: 'a column that few apps need',
  failures: 'two views',
  devices: 'a list or one device',
  'outbox redrive': 'page by page',
  'receipts redrive': 'page by page',
  'user list': 'page by page',
  'user erase': 'a report of its own',
  'device delete-all': 'counts and asks',
  audit: 'export',
  'secret rotate': 'waits',
  'webhooks enable': 'reads before it changes',
  'webhooks disable': 'reads before it changes',
  freeze: 'of an app or of all',
  unfreeze: 'of an app or of all',
  'app create': 'keys from a file',
  'app set': 'pairs',
  'app delete': 'the id once more',
  'recurring list': 'all of them',
  'recurring create': 'content',
  'recurring change': 'content',
};

/**
 * Commands that change the database themselves, with the action that they write into the audit log.
 */
const audited: Readonly<Record<string, string>> = {
  import: 'import.run',
  'move-in': 'import.run',
  restore: 'service.restore',
  migrate: 'service.distribute',
};

const sources = join(import.meta.dirname, '../../../ops/cli/commands');

/** Returns the names of the operations that the sources of the commands call. */
function calledOperations(): Set<string> {
  const files = readdirSync(sources, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const texts = files.flatMap((file) => [
    ...readFileSync(join(sources, file), 'utf8').matchAll(/'(\w+)'/g),
  ]);
  return new Set(texts.map(([, text = '']) => text).filter((text) => text in operations));
}

test('every operation of the admin API has a command, or a reason for having none', () => {
  const known = [...calledOperations(), ...Object.keys(withoutCommand)];
  expect(known.toSorted()).toEqual(Object.keys(operations).toSorted());
});

/** Lists the commands that do something, with their full names. */
const leaves = (
  command: typeof program,
  words: readonly string[] = [],
): [string, typeof program][] =>
  visibleCommands(command).flatMap((one) => {
    const own = [...words, one.name()];
    const below = leaves(one, own);
    return exampleOf(one) === undefined ? below : [[own.join(' '), one], ...below];
  });

test('a command calls its operation, has a reason not to, or writes the audit itself', () => {
  const byHand = leaves(program).filter(([, command]) => operationOf(command) === undefined);
  const known = [...Object.keys(withoutRow), ...Object.keys(audited)];
  expect(byHand.map(([words]) => words).toSorted()).toEqual(known.toSorted());
});
