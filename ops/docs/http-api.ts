import type { z } from 'zod';
import { type Area, areas, routesOf } from '../../api/openapi/areas.ts';
import { openApiDocument } from '../../api/openapi/document.ts';
import {
  jsonReplies,
  type ReplySchemas,
  replySchemas,
  requestSchema,
} from '../../api/openapi/json-schema.ts';
import {
  callerOf,
  type Example,
  type Examples,
  loadExamples,
} from '../../api/openapi/operation.ts';
import type { Route } from '../../api/route.ts';
import { loadRoutes } from '../../api/route-loader.ts';
import { errorTable, errorText } from '../../shared/domain/errors/errors.ts';
import { curlCommand, jsonText } from './curl.ts';
import {
  bytes,
  code,
  fenced,
  flatMembersOf,
  type JsonSchema,
  jsonSchema,
  page,
  table,
  typeText,
} from './markdown.ts';

/** Largest reply that is shown, in lines. */
const maxReplyLines = 250;

/** Largest number of errors that the section of a call lists. */
const maxErrors = 40;

/** Maximum number of members that the section of each call repeats. */
const fewMembers = 8;

/** Renders the calls of a page, and the named schemas of their replies. */
class Reference {
  readonly #schemas: ReplySchemas;
  readonly #named: ReadonlyMap<string, JsonSchema>;
  /** Named schemas whose members the page shows already. */
  readonly #shown = new Set<string>();
  readonly #examples: Examples;

  constructor(routes: readonly Route[], examples: Examples) {
    this.#examples = examples;
    this.#schemas = replySchemas(routes.flatMap(jsonReplies));
    this.#named = new Map(
      Object.entries(this.#schemas.named).map(([name, schema]) => [name, jsonSchema.parse(schema)]),
    );
  }

  /** Renders the section of a call. */
  section(route: Route): string[] {
    const { paths, summary, operation, query, body } = route;
    const [, ...aliases] = paths;
    if (summary === '') throw new Error(`${nameOf(route)} has no summary`);
    const example = this.#examples[operation];
    const limits = bodyText(route);
    return [
      `### ${code(nameOf(route))}`,
      summary,
      [
        `- **Caller:** ${callerOf(route)}`,
        ...(limits === '' ? [] : [`- **Body:** ${limits}`]),
        ...(aliases.length > 0 ? [`- **Other paths:** ${aliases.map(code).join(', ')}`] : []),
      ].join('\n'),
      ...(example ? exampleBlocks(route, example) : []),
      ...membersBlock('query parameter', query),
      ...membersBlock('member of the body', body),
      ...this.#replyBlocks(route),
      ...errorBlock(route),
    ];
  }

  /**
   * Renders the named schemas that a page links to and does not show yet. `isElsewhere` returns
   * true for the schemas of another page.
   */
  objects(text: string, isElsewhere: (name: string) => boolean = () => false): string[] {
    const [next] = [...this.#named.keys()]
      .filter((name) => text.includes(linkTo(name)) && !this.#shown.has(name) && !isElsewhere(name))
      .sort();
    if (next === undefined) return [];
    const section = this.#objectSection(next);
    return [...section, ...this.objects([text, ...section].join('\n'), isElsewhere)];
  }

  #objectSection(name: string, level = '###'): string[] {
    this.#shown.add(name);
    const schema = this.#named.get(name);
    if (!schema) return [];
    return [
      `${level} ${code(name)}`,
      ...(schema.description === undefined ? [] : [linked(schema.description)]),
      ...this.#contents(schema),
    ];
  }

  #contents(schema: JsonSchema): string[] {
    if (schema.properties) return this.#members(schema);
    const alternatives = this.#alternatives(schema);
    return alternatives.length > 0
      ? ['One of these objects.', ...alternatives]
      : [`${capitalised(typeText(schema))}.`];
  }

  /**
   * Renders the replies of a route. The first call that returns an object shows its members; other
   * calls refer to them. Every call shows an object with few members.
   */
  #replyBlocks({ replies }: Route): string[] {
    return Object.entries(replies).flatMap(([status, body]) => {
      const title = `**Reply${status === 'default' ? '' : ` ${status}`}:**`;
      if (!body) return [`${title} no body.`];
      if ('contentType' in body) return [`${title} ${code(body.contentType)}.`];
      const schema = jsonSchema.parse(this.#schemas.of(body));
      const name = reference.exec(schema.$ref ?? '')?.[1] ?? '';
      const own = schema.properties ? schema : this.#named.get(name);
      const alternatives = this.#alternatives(schema);
      if (alternatives.length > 0) return [`${title} one of these objects.`, ...alternatives];
      const [members] = own?.properties ? this.#members(own) : [];
      if (!own || !members) return [`${title} ${typeText(schema)}.`];
      const meaning = own.description === undefined ? '' : ` ${linked(own.description)}`;
      if (name === '' || Object.keys(own.properties ?? {}).length <= fewMembers)
        return [`${title} object.${meaning}`, members];
      if (this.#shown.has(name)) return [`${title} ${typeText(schema)}.`];
      return [`${title} ${typeText(schema)}.`, ...this.#objectSection(name, '####')];
    });
  }

  /** Renders the members of each alternative, if all alternatives are objects without a name. */
  #alternatives({ anyOf, oneOf }: JsonSchema): string[] {
    const choices = anyOf ?? oneOf ?? [];
    return choices.every(({ properties }) => properties)
      ? choices.flatMap((one) => this.#members(one))
      : [];
  }

  /** Renders the members of a reply or of a named schema. */
  #members(schema: JsonSchema): string[] {
    const rows = flatMembersOf(schema).map(
      ({ name, type, isRequired, meaning, schema: member }) => {
        const referred = this.#named.get(reference.exec(member.$ref ?? '')?.[1] ?? '');
        const text = meaning === '' ? (referred?.description ?? '') : meaning;
        return [code(name), type, isRequired ? 'yes' : 'no', linked(text)];
      },
    );
    const values = schema.additionalProperties;
    const isOpen = values !== undefined && values !== false;
    const own = isOpen ? [['…', 'any JSON', 'no', 'Custom members of the app.']] : [];
    return rows.length + own.length === 0
      ? []
      : [table(['member', 'type', 'always present', 'meaning'], [...rows, ...own])];
  }
}

const reference = /^#\/components\/schemas\/(\w+)$/;

/** Returns the end of a Markdown link to the section of a named schema. */
const linkTo = (name: string): string => `](#${name.toLowerCase()})`;

const capitalised = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

const citation = /protocol\/([a-z-]+)\.md#([a-z0-9-]+)/g;

/** Replaces citations of rules in a meaning by links. */
const linked = (meaning: string): string =>
  meaning.replaceAll(
    citation,
    (_, name, anchor) => `[${anchor.replaceAll('-', ' ')}](protocol/${name}.md#${anchor})`,
  );

const variables = fenced(
  'sh',
  [
    'URL=https://push.example.com',
    'APP_ID=wHx47FrDSrY1GzAzkZtSHtOx',
    'APP_KEY=Wn0cVhUzGTPQ3bXoYyqM7r2K',
    'MASTER_KEY=Zs4kLd8fRjE1uCtNaHvB6wXp',
  ].join('\n'),
);

const publicIntro = `Calls of apps, their servers and gateways. Operators have the [admin API](admin-http-api.md). The same as OpenAPI 3.1:
\`GET /openapi.json\`, and [openapi.json](../openapi.json).

**Requests.** Bodies and replies are JSON. The header \`X-LC-Id\` names the app. \`X-LC-Key: <app key>\` or \`X-LC-Key: <master key>,master\` proves
the caller ([signatures and other headers](protocol/clients.md#headers)). Use the master key on your own servers only. A member that is not required may be \`null\`, which counts as absent.

**Examples.** A test recorded each request and its reply. Ids, keys and tokens in them are invented. The commands use these variables:

${variables}

A session token of a user (\`SESSION\`) is in the reply of a [login](#post-11login).`;

const adminIntro = `Calls of operators, of the console and of the command line. Apps have the [HTTP API](http-api.md). The same as OpenAPI 3.1:
\`GET /openapi.json\`, and [openapi.json](../openapi.json).

**Requests.** Bodies and replies are JSON. \`Authorization: Bearer <token>\` proves the caller: \`CARILLON_ADMIN_TOKEN\`, or a
[token of a person](../operate/people.md) with a role. The roles in order: \`viewer\`, \`sender\`, \`operator\`, \`owner\`. A member that is not required may be \`null\`, which counts as absent.

**Examples.** A test recorded each request and its reply. Ids, keys and tokens in them are invented. The commands use these variables:

${fenced('sh', ['URL=https://push.example.com', 'APP_ID=wHx47FrDSrY1GzAzkZtSHtOx', 'CARILLON_ADMIN_TOKEN=…'].join('\n'))}`;

const commonErrors = `**Errors.** A refusal is \`{"code", "error"}\`: see [error codes](errors.md). In addition to the errors of a call, any call may be refused with 1 (an internal
error, or a malformed URL), 429 and 503. Calls of an app or an operator may be refused with 401, and calls that need the master key with 403. Calls with
a body may be refused with 107, 408, 413 and 415. A body above its limit is refused with 413. A user, installation, role or push above its limit is refused with 400 and code 116.`;

/** Renders the page with the calls of apps. */
export const httpApiPage = (): Promise<string> => renderPage('http-api', 'HTTP API', publicIntro);

/** Renders the page with the calls of operators. */
export const adminHttpApiPage = (): Promise<string> =>
  renderPage('admin-http-api', 'Admin HTTP API', adminIntro);

async function renderPage(name: Area['page'], title: string, intro: string): Promise<string> {
  const routes = await loadRoutes();
  const examples = await loadExamples();
  const own = areas.filter((area) => area.page === name);
  const all = new Reference(routes, examples);
  const body = sectionsOf(own, routes, all);
  const elsewhere = name === 'http-api' ? [] : await publicObjects(routes, examples);
  const objects = all.objects(body.join('\n'), (one) => elsewhere.includes(one));
  const text = page(
    title,
    intro,
    commonErrors,
    '## Contents',
    contents(own, routes),
    ...body,
    ...(objects.length > 0 ? ['## Objects', 'Parts of the replies of several calls.'] : []),
    ...objects,
  );
  return elsewhere.reduce(
    (linking, one) => linking.replaceAll(linkTo(one), `](http-api.md#${one.toLowerCase()})`),
    text,
  );
}

const sectionsOf = (own: readonly Area[], routes: readonly Route[], all: Reference): string[] =>
  own.flatMap((area) => [
    headOf(area),
    ...routesOf(area, routes).flatMap((route) => all.section(route)),
  ]);

/** Returns the names of the objects that the public page shows, and the admin page need not. */
async function publicObjects(routes: readonly Route[], examples: Examples): Promise<string[]> {
  const all = new Reference(routes, examples);
  const own = areas.filter((area) => area.page === 'http-api');
  const body = sectionsOf(own, routes, all);
  const sections = [...body, ...all.objects(body.join('\n'))];
  return sections.flatMap((text) => /^####? `(\w+)`$/.exec(text)?.[1] ?? []);
}

/** Renders the table of contents: each area with its calls. */
function contents(own: readonly Area[], routes: readonly Route[]): string {
  const rows = own.flatMap((area) => [
    [`**[${area.title}](#${anchorOf(area.title)})**`, ''],
    ...routesOf(area, routes).map((route) => [
      `[${code(nameOf(route))}](#${anchorOf(nameOf(route))})`,
      route.summary,
    ]),
  ]);
  return table(['call', 'what it does'], rows);
}

const nameOf = ({ method, paths }: Route): string => `${method} ${paths[0]}`;

/** Returns GitHub's anchor of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

const headOf = ({ title, rules }: Area): string =>
  `## ${title}\n\nRules: [${rules}](protocol/${rules}.md).`;

function exampleBlocks(route: Route, example: Example): string[] {
  const { status, reply } = example;
  const command = fenced('sh', curlCommand(route, example));
  if (reply === undefined) return [command];
  const text = jsonText(reply);
  return text.split('\n').length > maxReplyLines
    ? [command, 'The reply is long: see [openapi.json](../openapi.json).']
    : [command, `Reply ${status}:`, fenced('json', text)];
}

function bodyText(route: Route): string {
  const { bodyBytesBelow, rate } = route.limit;
  if (bodyBytesBelow === 0) return '';
  const counted = rate === 'push' ? '. Counts for `pushCallsPerMinute`' : '';
  return `${kindOf(route)}, ${sizeText(bodyBytesBelow)}${counted}.`;
}

function kindOf({ hasRawBody, forwardsBody, method, body }: Route): string {
  if (hasRawBody) return 'any text';
  if (forwardsBody) return 'any JSON';
  return method === 'DELETE' || body === undefined ? 'not needed' : 'a JSON object';
}

/**
 * Formats a size limit. A limit is the first size that is refused. Limits of small bodies are one
 * byte above a round size.
 */
const sizeText = (below: number): string =>
  below % 1024 === 1 ? `at most ${bytes(below - 1)}` : `less than ${bytes(below)}`;

function membersBlock(title: string, schema: z.ZodType | undefined): string[] {
  if (!schema) return [];
  const members = flatMembersOf(jsonSchema.parse(requestSchema(schema)), isOptions);
  if (members.length === 0) return [];
  const rows = members.map(({ name, type, isRequired, meaning, schema: member }) => [
    code(name),
    isOptions(member) ? 'object' : isRequired ? type : type.replace(/( or null|, `null`)$/, ''),
    isRequired ? 'yes' : 'no',
    isOptions(member) ? 'Options of the app: see [options](app-options.md).' : linked(meaning),
  ]);
  return [table([title, 'type', 'required', 'meaning'], rows)];
}

/** True for the options of an app, which have a page of their own. */
const isOptions = ({ properties }: JsonSchema): boolean =>
  properties !== undefined && 'hybridPush' in properties;

/** Lists the refusals of a call by code. */
function errorBlock({ refusals }: Route): string[] {
  const sorted = [...new Set(refusals)].sort((a, b) => errorTable[a].code - errorTable[b].code);
  if (sorted.length === 0) return [];
  if (sorted.length > maxErrors)
    return ['**Errors:** those of the calls inside it. See [error codes](errors.md).'];
  const rows = sorted.map((name) => [
    String(errorTable[name].code),
    String(errorTable[name].status),
    errorText(name),
  ]);
  return [table(['error', 'status', 'meaning'], rows)];
}

/** Formats the OpenAPI document with line breaks, so that a diff shows the changed lines. */
export const openApiFile = async (): Promise<string> =>
  `${JSON.stringify(openApiDocument(await loadRoutes(), await loadExamples()), null, 2)}\n`;
