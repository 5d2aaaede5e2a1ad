import { z } from 'zod';
import {
  functionHostVariables,
  localVariables,
  processVariables,
} from '../../shared/config/environment.ts';
import { code, page, table } from './markdown.ts';
import { type Member, membersOf, shapeOf } from './schema.ts';

const intro = `Variables of the environment, read once at the start. An empty variable counts as absent. A wrong one ends the start with a line
that names it and what is expected, never its value. \`npx carillon doctor\` warns of unknown names that begin with \`CARILLON_\`.`;

/** Renders the environment variables of each kind of process. */
export function configurationPage(): string {
  return page(
    'Configuration',
    intro,
    '## api and dispatcher',
    variables(processVariables),
    '## `npm start` and the command line',
    'All are optional. Variables that are not listed here go on to the processes that `npm start` runs.',
    variables(localVariables),
    '## The embedded function host',
    '`npm start` sets these for the process that runs cloud functions.',
    variables(functionHostVariables),
  );
}

function variables(schema: z.ZodObject): string {
  const rows = membersOf(shapeOf(schema)).map((member) => [
    code(member.name),
    `${member.meaning}${choicesOf(member)}`,
    defaultOf(schema, member),
  ]);
  return table(['variable', 'meaning', 'default'], rows);
}

/** Lists the allowed values of a variable with a fixed set. */
const choicesOf = ({ schema, type }: Member): string =>
  schema.enum ? ` One of ${type.replaceAll('"', '')}.` : '';

/**
 * Describes a default. A text in the schema takes precedence over the value, because some values
 * depend on the machine.
 */
function defaultOf(schema: z.ZodObject, { name, byDefault }: Member): string {
  if (byDefault !== undefined) return byDefault;
  const variable = schema.shape[name];
  if (variable instanceof z.ZodDefault) return code(String(variable.def.defaultValue));
  return variable instanceof z.ZodOptional ? 'none' : 'none: required';
}
