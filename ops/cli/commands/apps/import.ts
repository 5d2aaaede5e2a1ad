import { Option } from 'commander';
import type { ImportOptions } from '../../../import/run.ts';
import type { MoveInOptions } from '../../../move-in/move-in.ts';
import type { Shell } from '../../report.ts';

/** Adds `carillon import`: users, installations and roles from export files of the public service. */
export function addImportCommand({ program, act, isJson }: Shell): void {
  program
    .command('import <path...>')
    .description(
      'import users, installations and roles from export files of the public service, or folders of them',
    )
    .option('--app <appId>', 'the application; not needed when there is only one')
    .option(
      '--class <name>',
      '_User, _Installation, _Role or _Join:users:_Role, for files without a class in heading or name',
    )
    .option('--dry-run', 'write nothing: check everything, and report what would be imported')
    .option('--refused <file>', 'write every refusal to this file, as JSON lines')
    .action(
      act(async (paths: string[], options: ImportOptions) => {
        // Loaded here, because other commands need neither database nor accounts.
        const { runImport } = await import('../../../import/run.ts');
        return runImport(paths, options, { isJson: isJson() });
      }),
    );
}

/** Adds `carillon move-in`: a whole app of the public service, with the id and keys that its installed clients have. */
export function addMoveInCommand({ program, act, isJson }: Shell): void {
  program
    .command('move-in <dir>')
    .description(
      'create an app with its old id and keys, import users, installations and roles of its export, and list the remaining steps; may be repeated',
    )
    .requiredOption('--app-id <id>', 'id of the app, as installed clients send it')
    .option(
      '--keys-file <file>',
      'JSON with its appKey, masterKey and hookKey, or - for standard input; missing ones are generated',
    )
    .option('--name <name>', 'name of the app; by default its id')
    .addOption(new Option('--edition <edition>', 'home or international').choices(['home', 'international']))
    .option('--dry-run', 'write nothing: check everything, and report what would be imported')
    .option(
      '--refused <file>',
      'write every refusal to this file, as JSON lines; by default <app id>.refused.jsonl',
    )
    .action(
      act(async (dir: string, options: MoveInOptions) => {
        // Loaded here, because other commands need neither database nor accounts.
        const { moveIn } = await import('../../../move-in/move-in.ts');
        return moveIn(dir, options, { isJson: isJson() });
      }),
    );
}
