import type { Argument, Command } from 'commander';

const examples = new WeakMap<Command, string>();

/** Adds an example to the help of a command, without `carillon`. Returns the command. */
export function example(command: Command, text: string): Command {
  examples.set(command, text);
  return command.addHelpText('after', `\nExample:\n  carillon ${text}`);
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

/** Shows an argument as a person types it: `<name>` if it is required, else `[name]`. */
export function argumentText(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}
