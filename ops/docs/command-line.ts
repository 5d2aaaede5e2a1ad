import type { Command, Option } from 'commander';
import { argumentText, exampleOf, visibleCommands } from '../cli/command.ts';
import { program } from '../cli/program.ts';
import { code, fenced, page, table } from './markdown.ts';

const intro = `\`npx carillon <command>\` speaks to the admin API of a running service. It finds the service by \`PUBLIC_URL\`, else \`PORT\`, else the
file that \`npm start\` leaves in \`CARILLON_DATA_DIR\`; the admin token by \`CARILLON_ADMIN_TOKEN\`, else a file there. Exit codes: 0 done, 1 refused or
failed, 2 wrong usage. Every command takes \`--help\`.

Everything that a command prints for people is in English or Chinese: help, tables, reports, questions and errors. \`--lang en\` or \`--lang zh\`
chooses. Without it, the first of \`LC_ALL\`, \`LC_MESSAGES\` and \`LANG\` that is set decides: Chinese if it begins with \`zh\`. Names of commands,
options, members and states stay English. \`--json\` prints the same in both languages.`;

/** Renders every command with its arguments, options and example, grouped by task. */
export function commandLinePage(): string {
  return page(
    'Command line',
    intro,
    '## Options of every command',
    optionTable(program.options),
    ...tasks().flatMap(([task, commands]) => [
      `## ${task}`,
      ...commands.flatMap((command) => sectionsOf(command, [program.name()])),
    ]),
  );
}

/** Groups the commands by task, as in the help. */
function tasks(): [string, Command[]][] {
  const groups = Map.groupBy(visibleCommands(program), (command) => command.helpGroup());
  return [...groups].map(([heading, commands]) => [heading.replace(/:$/, ''), commands]);
}

/**
 * Returns the sections of a command and its subcommands. A command that only groups subcommands has
 * no section.
 */
function sectionsOf(command: Command, path: string[]): string[] {
  const names = [...path, command.name()];
  const below = visibleCommands(command).flatMap((inner) => sectionsOf(inner, names));
  const example = exampleOf(command);
  if (example === undefined) return below;
  const usage = [...names, ...command.registeredArguments.map(argumentText)];
  return [
    `### ${code(names.join(' '))}`,
    toSentence(command.description()),
    fenced('', [...usage, ...(command.options.length > 0 ? ['[options]'] : [])].join(' ')),
    ...(command.options.length > 0 ? [optionTable(command.options)] : []),
    'Example:',
    fenced('', `carillon ${example}`),
    ...below,
  ];
}

function optionTable(options: readonly Option[]): string {
  return table(
    ['option', 'meaning'],
    options.map((option) => [code(option.flags), `${option.description}${defaultText(option)}`]),
  );
}

const defaultText = ({ defaultValue, mandatory }: Option): string =>
  `${defaultValue === undefined ? '' : ` (default: ${JSON.stringify(defaultValue)})`}${mandatory ? ' (required)' : ''}`;

/** Capitalizes a description from commander and adds a full stop. */
const toSentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
