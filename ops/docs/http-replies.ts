import { jsonReplies, type ReplySchemas, replySchemas } from '../../api/openapi/json-schema.ts';
import type { ReplyBody, Route } from '../../api/route.ts';
import { errorTable } from '../../shared/domain/errors/errors.ts';
import { code, table } from './markdown.ts';
import { type JsonSchema, jsonSchema, membersOf, typeText } from './schema.ts';

/** Replies and refusals of routes, for the page of the HTTP API. */
export class HttpReplies {
  readonly #schemas: ReplySchemas;

  constructor(routes: readonly Route[]) {
    this.#schemas = replySchemas(routes.flatMap(jsonReplies));
  }

  /** Returns the rows of a route's table that describe its replies. */
  rowsOf({ replies, refusals }: Route): string[][] {
    const texts = Object.entries(replies).map(([status, body]) => [status, this.#textOf(body)]);
    const [first] = texts;
    // Two statuses often have the same body.
    const isSame = texts.every(([, text]) => text === first?.[1]);
    const merged = isSame && first ? [[texts.map(([status]) => status).join(' or '), first[1]]] : texts;
    return [
      ...merged.map(([status, text = '']) => [`reply ${status === 'default' ? '' : status}`.trim(), text]),
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

/** Lists refusals by code; texts and statuses are on the page of error codes. */
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
