import type { Argument, Command, HelpConfiguration } from 'commander';
import { say, translated } from './language.ts';
import { widthOf } from './table.ts';

const examples = new WeakMap<Command, string>();

/** Adds an example to the help of a command, without `carillon`. Returns the command. */
export function example(command: Command, text: string): Command {
  examples.set(command, text);
  return command.addHelpText('after', () => `\n${say('Example:')}\n  carillon ${text}`);
}

/** Returns the example of a command; undefined for a group of commands. */
export const exampleOf = (command: Command): string | undefined => examples.get(command);

/**
 * Lists the commands below a command that its help shows: not `help`, and not the names that were
 * removed.
 */
export const visibleCommands = (command: Command): readonly Command[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => command.commands.includes(one));

/** Formats the help in the language of the command, and lists commands without their options. */
export const helpFormat: HelpConfiguration = {
  // A list that also says `[options]` is too wide for a terminal.
  subcommandTerm: (command) =>
    [command.name(), ...command.registeredArguments.map(argumentText)].join(' '),
  styleTitle: translated,
  styleDescriptionText: describe,
  displayWidth: widthOf,
  boxWrap: wrapped,
};

/** What commander adds to the description of an option. */
const addition = / ?\((choices: "|default: ["\d[]).*\)$/;

function describe(text: string): string {
  const [added = ''] = addition.exec(text) ?? [];
  const own = text.slice(0, text.length - added.length);
  return translated(own) + added.replaceAll(/choices: |default: /g, (name) => translated(name));
}

/**
 * Parts between which a line may break: words, and Chinese characters with the punctuation around
 * them.
 */
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

/** Shows an argument as a person types it: `<name>` if it is required, else `[name]`. */
export function argumentText(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}
