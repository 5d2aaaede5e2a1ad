import { setImmediate as nextTurn } from 'node:timers/promises';

/** Length of text that is written in one turn of the event loop: a few milliseconds of work. */
const maxLengthPerTurn = 256 * 1024;

/**
 * Writes a reply as JSON. The rows of a list are written one by one and yield to other calls, which a list of megabytes
 * would otherwise delay.
 */
export async function replyText(body: object): Promise<string> {
  if (!('results' in body) || !Array.isArray(body.results)) return JSON.stringify(body);
  const rows: string[] = [];
  let length = 0;
  for (const row of body.results) {
    const text = JSON.stringify(row) ?? 'null';
    rows.push(text);
    length += text.length;
    if (length < maxLengthPerTurn) continue;
    length = 0;
    await nextTurn();
  }
  const members = Object.entries(body).flatMap(([name, value]) => {
    const text = name === 'results' ? `[${rows.join(',')}]` : JSON.stringify(value);
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
  });
  return `{${members.join(',')}}`;
}
