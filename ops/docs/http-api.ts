import type { z } from 'zod';
import { openApiDocument } from '../../api/openapi/document.ts';
import { jsonReplies, type ReplySchemas, replySchemas } from '../../api/openapi/json-schema.ts';
import { type Area, areaOf, areas, callerOf, loadExamples } from '../../api/openapi/operation.ts';
import type { ReplyBody, Route } from '../../api/route.ts';
import { loadRoutes } from '../../api/route-loader.ts';
import { errorTable } from '../../shared/domain/errors/errors.ts';
import {
  bytes,
  code,
  type JsonSchema,
  jsonSchema,
  membersOf,
  page,
  shapeOf,
  table,
  typeText,
} from './markdown.ts';

/** Renders the replies and refusals of routes for the page of the HTTP API. */
class HttpReplies {
  readonly #schemas: ReplySchemas;

  constructor(routes: readonly Route[]) {
    this.#schemas = replySchemas(routes.flatMap(jsonReplies));
  }

  /** Returns the rows with the replies of a route. */
  rowsOf({ replies, refusals }: Route): string[][] {
    const texts = Object.entries(replies).map(([status, body]) => [status, this.#textOf(body)]);
    const [first] = texts;
    // Two statuses often have the same reply body.
    const isSame = texts.every(([, text]) => text === first?.[1]);
    const merged =
      isSame && first ? [[texts.map(([status]) => status).join(' or '), first[1]]] : texts;
    return [
      ...merged.map(([status, text = '']) => [
        `reply ${status === 'default' ? '' : status}`.trim(),
        text,
      ]),
      ...(refusals.length === 0 ? [] : [['refused with', refusalText(refusals)]]),
    ];
  }

  /** Returns a section for each named schema. */
  sections(): string[] {
    return Object.entries(this.#schemas.named).flatMap(([name, value]) => {
      const schema = jsonSchema.parse(value);
      return [
        `### ${code(name)}`,
        ...(schema.description === undefined ? [] : [schema.description]),
        ...(schema.properties ? [membersTable(schema)] : [`${capitalised(typeText(schema))}.`]),
      ];
    });
  }

  #textOf(body: ReplyBody | undefined): string {
    if (!body) return '';
    return 'contentType' in body
      ? code(body.contentType)
      : typeText(jsonSchema.parse(this.#schemas.of(body)));
  }
}

/** Lists refusals by code. Their texts and statuses are on the page of error codes. */
function refusalText(names: Route['refusals']): string {
  const sorted = [...new Set(names)].sort((a, b) => errorTable[a].code - errorTable[b].code);
  return sorted.map((name) => `${errorTable[name].code} ${code(name)}`).join(', ');
}

const capitalised = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

function membersTable(schema: JsonSchema): string {
  const rows = membersOf(schema).map(({ name, type, isRequired, meaning }) => [
    code(name),
    type,
    isRequired ? 'yes' : 'no',
    meaning,
  ]);
  const isOpen = schema.additionalProperties !== undefined && schema.additionalProperties !== false;
  const own = isOpen ? [['…', 'any JSON', 'no', 'Members of the app’s own.']] : [];
  return rows.length + own.length === 0
    ? ''
    : table(['member', 'type', 'always present', 'meaning'], [...rows, ...own]);
}

const intro = `Bodies and replies are JSON. An app is named by the header \`X-LC-Id\` and proves itself by \`X-LC-Key: <app key>\` or
\`X-LC-Key: <master key>,master\` (or \`X-LC-Sign\`); the names \`X-AVOSCloud-…\` of older SDKs count too. The admin API asks for
\`Authorization: Bearer <CARILLON_ADMIN_TOKEN>\`. Errors: [Error codes](errors.md). A body that is larger than its limit is refused with 413, an
object (user, installation, role, push) with 400 and code 116. A member that is not required may be \`null\`, which counts as absent. What a
push holds: [Sending](../sending.md).`;

const refusals = `Beside the refusals that a call names below, every call may be refused with 1 (an internal error, or a malformed URL), 429 and 503; calls of
an app or the operator with 401, calls that need the master key with 403, calls with a body with 107, 408, 413 and 415. The same as OpenAPI
3.1, with an example of each call: \`GET /openapi.json\`, and [openapi.json](../openapi.json).`;

/** Renders a table per route, grouped into the areas above. */
export async function httpApiPage(): Promise<string> {
  const routes = await loadRoutes();
  const replies = new HttpReplies(routes);
  const sections = areas.flatMap((area) => {
    const own = routes.filter((route) => areaOf(route) === area);
    return own.length > 0
      ? [headOf(area), ...own.flatMap((route) => sectionOf(route, replies))]
      : [];
  });
  return page('HTTP API', intro, refusals, ...sections, '## Replies', ...replies.sections());
}

const headOf = ({ title, rules }: Area): string =>
  `## ${title}\n\nRules: [${rules}](protocol/${rules}.md).`;

function sectionOf(route: Route, replies: HttpReplies): string[] {
  const { method, paths, summary } = route;
  const [path = '', ...aliases] = paths;
  if (summary === '') throw new Error(`${method} ${path} has no summary`);
  return [
    `### ${code(`${method} ${path}`)}`,
    summary,
    table(
      ['', ''],
      [
        ...(aliases.length > 0 ? [['also', aliases.map(code).join(', ')]] : []),
        ['who may call', callerOf(route)],
        ['body', bodyText(route)],
        ...replies.rowsOf(route),
      ],
    ),
    ...membersBlock('query', route.query),
    ...membersBlock('body', route.body),
  ];
}

function bodyText(route: Route): string {
  const { bodyBytesBelow, rate } = route.limit;
  if (bodyBytesBelow === 0) return 'none';
  const counted = rate === 'push' ? '; counts for `pushCallsPerMinute`' : '';
  return `${kindOf(route)}, ${sizeText(bodyBytesBelow)}${counted}`;
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

function membersBlock(place: 'query' | 'body', schema: z.ZodType | undefined): string[] {
  if (!schema) return [];
  const shape = shapeOf(schema);
  const members = membersOf(shape);
  if (members.length === 0) return [];
  const hasMeanings = members.some(({ meaning }) => meaning !== '');
  const headings = [
    `member of the ${place}`,
    'type',
    'required',
    ...(hasMeanings ? ['meaning'] : []),
  ];
  const rows = members.map(({ name, type, isRequired, meaning, schema: member }) => [
    code(name),
    nested(member) ?? (isRequired ? type : type.replace(/ or null$/, '')),
    isRequired ? 'yes' : 'no',
    ...(hasMeanings ? [meaning] : []),
  ]);
  return [table(headings, rows)];
}

/** The options of an app have a separate page. */
const nested = ({ properties }: JsonSchema): string | undefined =>
  properties && 'hybridPush' in properties ? 'object: [options](app-options.md)' : undefined;

/** Formats the OpenAPI document with line breaks, so that a diff shows the changed lines. */
export const openApiFile = async (): Promise<string> =>
  `${JSON.stringify(openApiDocument(await loadRoutes(), await loadExamples()), null, 2)}\n`;
