import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { responseRules as apns, broadcastRules } from '../../../connectors/apns/responses.ts';
import { responseRules as huawei } from '../../../connectors/vendors/huawei/responses.ts';
import { callRules, targetRules } from '../../../connectors/vendors/meizu/responses.ts';
import { responseRules as oppo } from '../../../connectors/vendors/oppo/responses.ts';
import { responseRules as vivo } from '../../../connectors/vendors/vivo/responses.ts';
import { responseRules as xiaomi } from '../../../connectors/vendors/xiaomi/responses.ts';

/**
 * Returns the rows of the tables with reactions to codes or reasons: the codes, and the whole row.
 */
async function rowsOf(page: string): Promise<{ codes: string[]; row: string }[]> {
  const url = new URL(`../../../docs/reference/protocol/${page}.md`, import.meta.url);
  const table =
    /^\|(?: status \|)? (?:code|reason) (?:\|[^\n]*)?\| reaction \|[^\n]*\n\|[-|]+\n((?:\|.*\n)+)/gm;
  return [...(await readFile(url, 'utf8')).matchAll(table)].flatMap(([head, rows = '']) =>
    rows
      .trim()
      .split('\n')
      .map((row) => ({
        codes: codesOf(row.split('|')[head.startsWith('| status') ? 2 : 1] ?? ''),
        row,
      })),
  );
}

/**
 * Returns the codes in a cell: `14 to 19` are six codes. A code with a condition (`20301
 * otherwise`) is left out.
 */
function codesOf(cell: string): string[] {
  return cell.split(',').flatMap((part) => {
    const [, from, to] = part.trim().match(/^(\d+) to (\d+)$/) ?? [];
    if (from && to)
      return Array.from({ length: Number(to) - Number(from) + 1 }, (_, i) => `${+from + i}`);
    return part.trim().match(/^`?(-?\w+)`?$/)?.[1] ?? [];
  });
}

const rule = ({ code, reaction }: { code: string; reaction: string }) => ({ code, reaction });

test.each([
  ['huawei', huawei.map(rule)],
  ['xiaomi', xiaomi.map(rule)],
  ['meizu', [...callRules, ...targetRules].map(rule)],
  ['oppo', oppo.map(rule)],
  ['vivo', vivo.map(rule)],
  [
    'apns',
    [...apns, ...broadcastRules].map(({ reason, reaction }) => ({ code: reason, reaction })),
  ],
] as const)(
  'the page of %s lists each code of the gateway with its reaction',
  async (page, rules) => {
    const rows = await rowsOf(page);
    const stated = rows.flatMap(({ codes }) => codes);
    // Their reactions depend on more than the code. The page explains this in words.
    const inWords = new Set(['80300007', '10071']);
    const isStated = ({ code, reaction }: { code: string; reaction: string }) =>
      inWords.has(code) ||
      rows.some(({ codes, row }) => codes.includes(code) && row.includes(reaction));
    const plain = rules.filter(({ code }) => !code.includes(' ') && code !== '20301');
    expect(plain.filter((one) => !isStated(one))).toEqual([]);
    const known = new Set(rules.map(({ code }) => code));
    expect(stated.filter((code) => !known.has(code))).toEqual([]);
  },
);
