import { say } from './language.ts';
import { type AddCommand, type Shell, UsageError } from './report.ts';

/**
 * Command names of the previous release, and the commands that replace them. The next release
 * removes them.
 */
const replacements: Readonly<Record<string, string>> = {
  schedule: 'scheduled',
  resend: 'redrive',
  apps: 'app list --sizes',
  'user find': 'user list --q',
};

/** Renamed commands. Each command prints its new name and does nothing else. */
export const removedNames: readonly AddCommand[] = Object.entries(replacements).map(
  ([name, replacement]) =>
    (shell) =>
      addRemoved(shell, name.split(' '), replacement),
);

function addRemoved({ program, act }: Shell, words: string[], replacement: string): void {
  const [name = '', group] = words.toReversed();
  const parent = program.commands.find((one) => one.name() === group) ?? program;
  parent
    .command(name, { hidden: true })
    .argument('[args...]')
    .allowUnknownOption()
    .helpOption(false)
    .action(
      act(async () => {
        throw new UsageError(
          say('`carillon {removed}` was removed: use `carillon {replacement}`.', {
            removed: words.join(' '),
            replacement,
          }),
        );
      }),
    );
}
