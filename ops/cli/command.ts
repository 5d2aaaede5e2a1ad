import { Argument, type Command } from 'commander';
import { type Sources, type Values, valuesOf } from './arguments.ts';
import { example } from './help.ts';
import type { English } from './language.ts';
import type { AddCommand, Report } from './report.ts';

/** A command that does more than to call one operation (see `Row`). */
export interface CommandDefinition<S extends Sources> {
  /** An example of its use, without `carillon`; by default the words of the command. */
  example?: string | undefined;
  /** Arguments and options, by the names of their values. */
  takes: S;
  /** Does the work. Without a report it has printed its result itself. */
  run(values: Values<S>, context: { isJson: boolean }): Promise<Report | undefined>;
  /** Leaves the command out of the help. */
  isHidden?: boolean;
  /** Sets what few commands need, such as unknown options. */
  setUp?(command: Command): void;
}

/** Declares a command; `words` are its name, such as `token list`. */
export function command<S extends Sources>(
  words: string,
  about: English,
  definition: CommandDefinition<S>,
): AddCommand {
  return ({ program, act, isJson }) => {
    const added = addWords(program, words, definition.isHidden).description(about);
    for (const { declared } of Object.values(definition.takes))
      if (declared instanceof Argument) added.addArgument(declared);
      else added.addOption(declared);
    definition.setUp?.(added);
    example(added, definition.example ?? words).action(
      act(async () =>
        definition.run(await valuesOf(added, definition.takes), { isJson: isJson() }),
      ),
    );
  };
}

/** Returns a group of commands, such as `token`, for those below it. */
export const group =
  (name: string, about: English): AddCommand =>
  ({ program }) =>
    void program.command(name).description(about);

/** Adds a command below the commands that its first words name. */
function addWords(program: Command, words: string, hidden = false): Command {
  const [name = '', ...above] = words.split(' ').toReversed();
  const parent = above
    .toReversed()
    .reduce((found, word) => found.commands.find((one) => one.name() === word) ?? found, program);
  return parent.command(name, { hidden });
}
