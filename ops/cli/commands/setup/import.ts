import { writeStep } from '../../../../shared/domain/texts/texts.ts';
import type { Reply } from '../../../client/client.ts';
import { app, argument, choice, flag, required, rest, text } from '../../arguments.ts';
import { command } from '../../command.ts';
import { language, say, words } from '../../language.ts';
import { row } from '../../row.ts';
import { table } from '../../table.ts';

const dryRun = () =>
  flag('--dry-run', 'write nothing: check everything, and report what would be imported');

/**
 * `carillon import`, `move-in` and `move-in-state`: import an export of LeanCloud, or a
 * whole app with its id and keys.
 */
export const importCommands = [
  command(
    'move-in',
    'create an app with its old id and keys, import users, installations and roles of its export, and list the remaining steps; may be repeated',
    {
      example: 'move-in ./export --app-id wHx47FrDSrY1GzAzkZtSHtOx --keys-file keys.json --dry-run',
      takes: {
        dir: argument('<dir>'),
        appId: required(text('--app-id <id>', 'id of the app, as installed clients send it')),
        keysFile: text(
          '--keys-file <file>',
          'JSON with its appKey, masterKey and hookKey, or - for standard input; missing ones are generated',
        ),
        name: text('--name <name>', 'name of the app; by default its id'),
        edition: choice('--edition <edition>', 'home or international', ['home', 'international']),
        dryRun: dryRun(),
        refused: text(
          '--refused <file>',
          'write every refusal to this file, as JSON lines; by default <app id>.refused.jsonl',
        ),
      },
      run: async ({ dir, ...options }, context) => {
        // Loaded here, because other commands do not need the database or the accounts.
        const { moveIn } = await import('../../../move-in/move-in.ts');
        return moveIn(dir, options, context);
      },
    },
  ),
  row(
    'move-in-state',
    'show how far the move of an application is: steps, devices by day, gateways, the last import',
    {
      operation: 'getMoveIn',
      show: describe,
    },
  ),
  command(
    'import',
    'import users, installations and roles from export files of LeanCloud, or folders of them',
    {
      example: 'import ./export --dry-run',
      takes: {
        paths: rest('<path...>'),
        app: app(),
        class: text(
          '--class <name>',
          '_User, _Installation, _Role or _Join:users:_Role, for files without a class in heading or name',
        ),
        dryRun: dryRun(),
        refused: text('--refused <file>', 'write every refusal to this file, as JSON lines'),
      },
      run: async ({ paths, ...options }, context) => {
        // Loaded here, because other commands do not need the database or the accounts.
        const { runImport } = await import('../../../import/run.ts');
        return runImport(paths, options, context);
      },
    },
  ),
];

const marks = { done: 'x', todo: ' ', check: '?' } as const;

function describe({ devices, users, days, steps }: Reply<'getMoveIn'>): string {
  const rows = days.map(({ day, moved, registered }) => [day, moved, registered]);
  return [
    say(
      '{imported} devices were imported, {seen} of them have called since; {registered} registered here; {users} users.',
      { ...devices, users },
    ),
    ...(days.length === 0 ? [] : ['', table(words('called last (UTC)', 'moved', 'new'), rows)]),
    '',
    say('Steps ([x] done, [ ] to do, [?] to be checked by you):'),
    ...steps.map((step) => `[${marks[step.state]}] ${writeStep(step, language())}`),
  ].join('\n');
}
