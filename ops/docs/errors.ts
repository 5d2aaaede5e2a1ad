import { errorTable, errorText } from '../../shared/domain/errors/errors.ts';
import { isCode } from '../../shared/domain/texts/catalogue.ts';
import { code, fenced, page, table } from './markdown.ts';

const intro = `Every refusal is JSON with a code and a message. \`error\` may be more specific than the message of the table, such as
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
    intro,
    fenced('json', '{ "code": 211, "error": "Could not find user." }'),
    table(['code', 'status', 'name in the code', 'message', 'in Chinese'], rows),
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : 1;
}
