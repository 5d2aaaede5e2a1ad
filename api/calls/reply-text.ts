import { setImmediate as nextTurn } from 'node:timers/promises';

/** Text that is written within one turn of the event loop: a few milliseconds' work. */
const lengthPerTurn = 256 * 1024;

/**
 * A reply as JSON. The rows of a list are written one by one, with pauses for other calls: a list of megabytes, written
 * in one go, would let all of them wait.
 */
export async function replyText(body: object): Promise<string> {
  if (!('results' in body) || !Array.isArray(body.results)) return JSON.stringify(body);
  const rows: string[] = [];
  let length = 0;
  for (const row of body.results) {
    const text = JSON.stringify(row) ?? 'null';
    rows.push(text);
    length += text.length;
    if (length < lengthPerTurn) continue;
    length = 0;
    await nextTurn();
  }
  const members = Object.entries(body).flatMap(([name, value]) => {
    const text = name === 'results' ? `[${rows.join(',')}]` : JSON.stringify(value);
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
  });
  return `{${members.join(',')}}`;
}
