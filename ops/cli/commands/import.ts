import type { ImportOptions } from '../../import/run.ts';
import type { Shell } from '../report.ts';

/** `carillon import`: users and installations from the export files of the public service. */
export function addImportCommand({ program, act, isJson }: Shell): void {
  program
    .command('import <path...>')
    .description('import users and installations from export files of the public service, or folders of them')
    .option('--app <appId>', 'the application; not needed when there is only one')
    .option('--class <name>', '_User or _Installation, for files that do not tell it by heading or name')
    .option('--dry-run', 'write nothing: check and compare everything, and say what would be done')
    .option('--refused <file>', 'write every refusal to this file, as JSON lines')
    .action(
      act(async (paths: string[], options: ImportOptions) => {
        // Database and accounts are loaded for nobody else.
        const { runImport } = await import('../../import/run.ts');
        return runImport(paths, options, { isJson: isJson() });
      }),
    );
}
