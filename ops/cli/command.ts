import { Argument, type Command, type HelpConfiguration } from 'commander';
import { type Sources, type Values, valuesOf } from './arguments.ts';
import { type English, say, translated } from './language.ts';
import { type AddCommand, type Report, type Shell, UsageError } from './report.ts';
import { widthOf } from './table.ts';

/** Command that does more than call one operation. For one operation, see `Row`. */
export interface CommandDefinition<S extends Sources> {
  /** Example of its use, without `carillon`. By default, the words of the command. */
  example?: string | undefined;
  /** Arguments and options, by the names of their values. */
  takes: S;
  /** Runs the command. Returns undefined if it has printed its result itself. */
  run(values: Values<S>, context: { isJson: boolean }): Promise<Report | undefined>;
  /** Hides the command in the help. */
  isHidden?: boolean;
  /** Configures the command further, for example to allow unknown options. */
  setUp?(command: Command): void;
}

/** Declares a command. `words` is its full name, such as `token list`. */
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

/** Declares a group of subcommands, such as `token`. */
export const group =
  (name: string, about: English): AddCommand =>
  ({ program }) =>
    void program.command(name).description(about);

/** Adds a command to the group that its first words name. */
function addWords(program: Command, words: string, hidden = false): Command {
  const [name = '', ...above] = words.split(' ').toReversed();
  const parent = above
    .toReversed()
    .reduce((found, word) => found.commands.find((one) => one.name() === word) ?? found, program);
  return parent.command(name, { hidden });
}

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

const examples = new WeakMap<Command, string>();

/** Adds an example to the help of a command, without `carillon`. Returns the command. */
export function example(command: Command, text: string): Command {
  examples.set(command, text);
  return command.addHelpText('after', () => `\n${say('Example:')}\n  carillon ${text}`);
}

/** Returns the example of a command, or undefined for a group of commands. */
export const exampleOf = (command: Command): string | undefined => examples.get(command);

/** Lists the subcommands that the help shows. Leaves out `help` and removed commands. */
export const visibleCommands = (command: Command): readonly Command[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => command.commands.includes(one));

/** Formats the help in the chosen language. Lists commands without their options. */
export const helpFormat: HelpConfiguration = {
  // With `[options]`, the list would be too wide for a terminal.
  subcommandTerm: (command) =>
    [command.name(), ...command.registeredArguments.map(argumentText)].join(' '),
  styleTitle: translated,
  styleDescriptionText: describe,
  displayWidth: widthOf,
  boxWrap: wrapped,
};

/** Text that commander appends to the description of an option. */
const addition = / ?\((choices: "|default: ["\d[]).*\)$/;

function describe(text: string): string {
  const [added = ''] = addition.exec(text) ?? [];
  const own = text.slice(0, text.length - added.length);
  return translated(own) + added.replaceAll(/choices: |default: /g, (name) => translated(name));
}

/** Parts between which a line may break: words, and Chinese characters with their punctuation. */
const parts =
  /\s*[“（《]*(?:\p{Script=Han}|[^\s\p{Script=Han}“（《，。、；：？）》”]+)?[，。、；：？）》”]*/gu;

function wrapped(text: string, width: number): string {
  const lines: string[] = [];
  let line = '';
  for (const part of text.match(parts) ?? []) {
    const isFull = line !== '' && widthOf(line + part) > width;
    if (isFull) lines.push(line);
    line = isFull ? part.trimStart() : line + part;
  }
  return [...lines, line].join('\n');
}

/** Formats an argument as in a usage line: `<name>` if it is required, otherwise `[name]`. */
export function argumentText(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}
