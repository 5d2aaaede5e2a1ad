import { z } from 'zod';
import { type CredentialGuide, commonMembers } from '../../connectors/contract/guide.ts';
import { guideOf } from '../../connectors/guides.ts';
import { credentialsOf } from '../../connectors/registry.ts';
import {
  functionHostVariables,
  localVariables,
  processVariables,
} from '../../shared/config/environment.ts';
import {
  type AppOptions,
  appOptionsPatch,
  effectiveOptions,
  movedInOptions,
  ownerOptions,
  planLimits,
} from '../../shared/domain/apps/app.ts';
import { errorTable, errorText } from '../../shared/domain/errors/errors.ts';
import { brandOf, type ConnectorId, profileConnectorIds } from '../../shared/domain/labels.ts';
import { isCode } from '../../shared/domain/texts/catalogue.ts';
import { createMetrics } from '../../shared/metrics.ts';
import {
  code,
  fenced,
  grouped,
  type JsonSchema,
  type Member,
  membersOf,
  page,
  shapeOf,
  table,
} from './markdown.ts';

const errorsIntro = `Every refusal is JSON with a code and a message. \`error\` may be more specific than the message of the table, such as
the name of the invalid member. Operators get messages in Chinese where \`Accept-Language\` asks for
it; apps get those that their users may read. Replies 429 and 503 have the
header \`Retry-After\` (seconds) where the time is known. Errors of gateways are not in this table: they are \`reason\` in the record of a push.`;

/** Renders every refusal, sorted by code, status and name. */
export function errorsPage(): string {
  const rows = Object.entries(errorTable)
    .toSorted(
      ([a, one], [b, other]) => one.code - other.code || one.status - other.status || compare(a, b),
    )
    .map(([name, { code: number, status }]) => [
      String(number),
      String(status),
      code(name),
      ...(isCode('errors', name) ? [errorText(name), errorText(name, 'zh')] : []),
    ]);
  return page(
    'Error codes',
    errorsIntro,
    fenced('json', '{ "code": 211, "error": "Could not find user." }'),
    table(['code', 'status', 'name in the code', 'message', 'in Chinese'], rows),
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : 1;
}

const metricsIntro = `\`GET /metrics\` of the api (its own port) and of each dispatcher (\`METRICS_PORT\`) returns these in the text format of Prometheus,
beside the process metrics of prom-client (\`process_…\`, \`nodejs_…\`). A process reports what it does itself: sums over all processes
are made by Prometheus. No label holds a token, a phone number or an address. A counter has the label \`app\` for the first 1,000 apps that
a process counts; all others are \`other\`. \`METRICS_TOKEN\` is asked for where it is set; without it \`/metrics\` answers callers on the same machine only.`;

const ownPrefix = 'carillon_';

const metric = z.object({
  name: z.string(),
  help: z.string(),
  type: z.string(),
  labelNames: z.array(z.string()).default([]),
  upperBounds: z.array(z.number()).optional(),
});
type Metric = z.infer<typeof metric>;

/**
 * Renders every `carillon_` metric. The metrics of prom-client are left out, because they depend on
 * the machine.
 */
export async function metricsPage(): Promise<string> {
  const { registry } = createMetrics();
  const types = new Map(
    (await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)]),
  );
  const all = registry
    .getMetricsAsArray()
    .filter(({ name }) => name.startsWith(ownPrefix))
    .map((one) => metric.parse({ ...one, type: types.get(one.name) }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  registry.clear();
  return page(
    'Metrics',
    metricsIntro,
    table(['metric', 'type', 'labels', 'meaning'], all.map(rowOf)),
    '## Buckets',
    'Upper bounds of the histograms, in seconds.',
    table(
      ['metric', 'buckets'],
      all
        .filter(({ upperBounds }) => upperBounds)
        .map(({ name, upperBounds = [] }) => [code(name), upperBounds.join(', ')]),
    ),
  );
}

const rowOf = ({ name, type, labelNames, help }: Metric): string[] => [
  code(name),
  type,
  labelNames.map(code).join(', '),
  help,
];

const configurationIntro = `Variables of the environment, read once at the start. An empty variable counts as absent. A wrong one ends the start with a line
that names it and what is expected, never its value. \`npx carillon doctor\` warns of unknown names that begin with \`CARILLON_\`.`;

/** Renders the environment variables of each kind of process. */
export function configurationPage(): string {
  return page(
    'Configuration',
    configurationIntro,
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
    variableDefault(schema, member),
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
function variableDefault(schema: z.ZodObject, { name, byDefault }: Member): string {
  if (byDefault !== undefined) return byDefault;
  const variable = schema.shape[name];
  if (variable instanceof z.ZodDefault) return code(String(variable.def.defaultValue));
  return variable instanceof z.ZodOptional ? 'none' : 'none: required';
}

const appOptionsIntro = `Options are set with \`npx carillon app set <appId> <option>=<value>\` or \`PATCH /console/api/apps/:appId\`
(\`{"options":{…}}\`). Every process uses a changed option within a second. An option of the wrong type or an unknown one is
refused with 400. An option that would let an operator read secrets, take over accounts, spend money or pass an approval is changed by owners only (403). Where the default depends on the plan, both are given: commercial / development.`;

/** Renders the app options with type, default and meaning. */
export function appOptionsPage(): string {
  const commercial = effectiveOptions('commercial', {});
  const development = effectiveOptions('development', {});
  const rows = membersOf(shapeOf(appOptionsPatch)).map(({ name, type, meaning }) => [
    code(name),
    type,
    optionDefault(name, commercial, development),
    ownerOptions.has(name) ? 'owner' : 'operator',
    meaning,
  ]);
  return page(
    'Options of an app',
    appOptionsIntro,
    table(['option', 'type', 'default', 'changed by', 'meaning'], rows),
    '## Apps that move in',
    `An app that is created with an \`appId\` of its own begins with ${pairs(movedInOptions)}.`,
    '## Limits of a plan',
    limits(),
  );
}

function optionDefault(name: string, commercial: AppOptions, development: AppOptions): string {
  const [one, other] = [commercial, development].map(
    (options) => Object.entries(options).find(([key]) => key === name)?.[1],
  );
  const texts = [one, other].map((value) => code(JSON.stringify(value)));
  return texts[0] === texts[1] ? (texts[0] ?? '') : texts.join(' / ');
}

const pairs = (options: object): string =>
  Object.entries(options)
    .map(([name, value]) => code(`${name}: ${JSON.stringify(value)}`))
    .join(', ');

const limitMeanings: Record<keyof (typeof planLimits)['commercial'], string> = {
  pushCallsPerMinute: 'default of `pushCallsPerMinute`',
  maxPushCallsPerMinute: 'most that `pushCallsPerMinute` may be',
  dailyRecipientCap: 'default of `dailyRecipientCap`; on a development app also its most',
  pending: 'scheduled pushes at a time',
  maxValidityDays: 'most that `installationValidityDays` may be',
};

function limits(): string {
  const { commercial, development } = planLimits;
  const rows = [
    ['pushCallsPerMinute', commercial.pushCallsPerMinute, development.pushCallsPerMinute],
    ['maxPushCallsPerMinute', commercial.maxPushCallsPerMinute, development.maxPushCallsPerMinute],
    ['dailyRecipientCap', commercial.dailyRecipientCap, development.dailyRecipientCap],
    ['pending', commercial.pending, development.pending],
    ['maxValidityDays', commercial.maxValidityDays, development.maxValidityDays],
  ] as const;
  return table(
    ['limit', 'commercial', 'development'],
    rows.map(([name, one, other]) => [limitMeanings[name], grouped(one), grouped(other)]),
  );
}

const credentialsIntro = `A push profile holds the credentials of one gateway: \`npx carillon profile put <appId> <connector> <file>\`, or
\`PUT /console/api/apps/:appId/profiles/:connector/:name\`. The profile \`_default\` serves devices that name none. Credentials are stored
encrypted and never shown again. \`npx carillon profile help <connector>\` says the same as this page. The device channel takes none.`;

/** Renders the credentials that a profile of each connector needs. */
export function credentialsPage(): string {
  const sections = profileConnectorIds.flatMap(sectionOf);
  return page('Credentials of a push profile', credentialsIntro, ...sections);
}

function sectionOf(id: ConnectorId): string[] {
  const [guide, schema] = [guideOf(id), credentialsOf(id)];
  if (!guide || !schema) return [];
  const { oneOf, anyOf, ...single } = shapeOf(schema);
  const variants = oneOf ?? anyOf ?? [single];
  return [
    `## ${brandOf(id)}: ${code(id)}`,
    guide.source,
    ...variants.flatMap((variant) => [
      ...(variants.length > 1 ? [`### ${titleOf(variant)}`] : []),
      membersTable(variant, guide),
    ]),
    'Example:',
    fenced('json', JSON.stringify(guide.example, null, 2)),
    ...(guide.files.length > 0
      ? ['Files that `carillon profile put` takes as the vendor hands them out:', list(guide.files)]
      : []),
  ];
}

/** Names a variant by its fixed `auth` member: `auth: "token"`. */
const titleOf = ({ properties = {} }: JsonSchema): string =>
  Object.entries(properties)
    .filter(([name, { const: fixed }]) => fixed !== undefined && name === 'auth')
    .map(([name, { const: fixed }]) => code(`${name}: ${JSON.stringify(fixed)}`))
    .join(', ');

function membersTable(schema: JsonSchema, guide: CredentialGuide): string {
  const rows = membersOf(schema).map((member) => [
    code(member.name),
    member.type,
    member.isRequired ? 'yes' : 'no',
    meaningOf(member, guide),
  ]);
  return table(['member', 'type', 'required', 'meaning'], rows);
}

function meaningOf({ name }: Member, { members }: CredentialGuide): string {
  const known: Readonly<Record<string, string>> = { ...commonMembers, ...members };
  const meaning = known[name];
  if (meaning === undefined) throw new Error(`The guide of a connector has no line for ${name}`);
  return meaning;
}

const list = (lines: readonly string[]): string => lines.map((line) => `- ${line}`).join('\n');
