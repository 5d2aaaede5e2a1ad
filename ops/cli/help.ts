import type { Argument, Command, HelpConfiguration } from 'commander';
import { say, translated } from './language.ts';
import { widthOf } from './table.ts';

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
