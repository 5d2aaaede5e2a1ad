import { Option } from 'commander';
import type { ImportOptions } from '../../../import/run.ts';
import type { MoveInOptions } from '../../../move-in/move-in.ts';
import type { Shell } from '../../report.ts';

/** `carillon import`: users, installations and roles from the export files of the public service. */
export function addImportCommand({ program, act, isJson }: Shell): void {
  program
    .command('import <path...>')
    .description(
      'import users, installations and roles from export files of the public service, or folders of them',
    )
    .option('--app <appId>', 'the application; not needed when there is only one')
    .option(
      '--class <name>',
      '_User, _Installation, _Role or _Join:users:_Role, for files that do not tell it by heading or name',
    )
    .option('--dry-run', 'write nothing: check and compare everything, and say what would be done')
    .option('--refused <file>', 'write every refusal to this file, as JSON lines')
    .action(
      act(async (paths: string[], options: ImportOptions) => {
        // Only this command loads database and accounts.
        const { runImport } = await import('../../../import/run.ts');
        return runImport(paths, options, { isJson: isJson() });
      }),
    );
}

/** `carillon move-in`: a whole app of the public service, under the id and keys that its installed clients hold. */
export function addMoveInCommand({ program, act, isJson }: Shell): void {
  program
    .command('move-in <dir>')
    .description(
      'make an app that keeps its id and keys, import users, installations and roles of its export, and list what is left to do; may be run again',
    )
    .requiredOption('--app-id <id>', 'id of the app, as installed clients send it')
    .option(
      '--keys-file <file>',
      'JSON with its appKey, masterKey and hookKey, or - for standard input; missing ones are made',
    )
    .option('--name <name>', 'name of the app; its id, where none is given')
    .addOption(new Option('--edition <edition>', 'home or international').choices(['home', 'international']))
    .option('--dry-run', 'write nothing: check and compare everything, and say what would be done')
    .option(
      '--refused <file>',
      'write every refusal to this file, as JSON lines; <app id>.refused.jsonl, where none is given',
    )
    .action(
      act(async (dir: string, options: MoveInOptions) => {
        // Only this command loads database and accounts.
        const { moveIn } = await import('../../../move-in/move-in.ts');
        return moveIn(dir, options, { isJson: isJson() });
      }),
    );
}
