import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CommandFailure, UsageError } from '../../ops/cli/report.ts';
import { type RawRecord, splitRecords } from '../../ops/import/splitter.ts';
import { anInstallation, aUser, newId, useImports } from '../support/import/imports.ts';
import { mutated } from './generators/bytes.ts';
import { dictionaryOf, members, rawBody } from './generators/values.ts';
import { fuzz } from './runs.ts';

const imports = useImports();

const hexText = (bytes: number) =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((array) => Buffer.from(array).toString('hex'));
/**
 * Members that the fixtures choose at random. Here the seed chooses them, so that a run can be
 * repeated.
 */
const chosen = fc.record({ objectId: hexText(12), deviceToken: hexText(32), username: hexText(8) });
const record = fc.tuple(fc.boolean(), chosen, members).map(([isUser, identity, more]) => {
  const { objectId, deviceToken, username } = identity;
  const updatedAt = '2026-10-02T07:58:45.609Z';
  const base = isUser
    ? aUser({ objectId, username })
    : anInstallation({ objectId, deviceToken, updatedAt });
  return Buffer.from(
    JSON.stringify(dictionaryOf([...Object.entries(base), ...Object.entries(more)])),
  );
});
const brokenLine = fc
  .oneof(
    { weight: 3, arbitrary: record },
    { weight: 2, arbitrary: mutated(record) },
    { weight: 1, arbitrary: rawBody },
  )
  .map((line) => Buffer.from(line.map((byte) => (byte === 10 || byte === 13 ? 32 : byte))));

/** Start, separator and end of a file. */
const shape = fc.record({
  head: fc.constantFrom(
    '',
    '\ufeff',
    '#filetype:JSON-streaming {"type":"Class","class":"_Installation"}\n',
    '\n\n',
    '[',
    '{"results":[',
  ),
  glue: fc.constantFrom('\n', '\r\n', ',\n', '\n\n'),
  tail: fc.constantFrom('', '\n', ']', ']}', '\u0000'),
});
const file = fc
  .tuple(shape, fc.array(brokenLine, { maxLength: 12 }))
  .map(([{ head, glue, tail }, lines]) =>
    Buffer.concat([
      Buffer.from(head),
      ...lines.flatMap((line, at) => (at === 0 ? [line] : [Buffer.from(glue), line])),
      Buffer.from(tail),
    ]),
  );

async function split(bytes: Buffer, sizes: number[]): Promise<RawRecord[]> {
  async function* chunks() {
    for (let from = 0, turn = 0; from < bytes.length; turn += 1) {
      const to = from + (sizes[turn % sizes.length] ?? 1);
      yield bytes.subarray(from, to);
      from = to;
    }
  }
  const found: RawRecord[] = [];
  for await (const records of splitRecords(chunks())) found.push(...records);
  return found;
}

describe('a damaged file of an export', () => {
  test('has the same records for all chunk sizes', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 8 });
    await fuzz(
      fc.asyncProperty(mutated(file), sizes, async (bytes, lengths) => {
        const textOf = (records: RawRecord[]) =>
          records.map(({ line, bytes, message }) => [line, bytes?.toString('hex'), message]);
        expect(textOf(await split(bytes, lengths))).toEqual(
          textOf(await split(bytes, [bytes.length + 1])),
        );
      }),
      { cases: 200 },
    );
  }, 600_000);

  test('affects only its own records: imported, existing, or refused', async () => {
    await fuzz(
      fc.asyncProperty(
        fc.array(brokenLine, { maxLength: 12 }),
        fc.boolean(),
        async (lines, areUsers) => {
          // The first record shows that the file contains lines, not a list.
          const [first, sound] = areUsers
            ? [aUser(), aUser()]
            : [anInstallation(), anInstallation()];
          const className = areUsers ? '_User' : '_Installation';
          const path = join(imports.folder, `${className}.${newId()}.jsonl`);
          const whole = [
            Buffer.from(JSON.stringify(first)),
            ...lines,
            Buffer.from(JSON.stringify(sound)),
          ];
          await writeFile(path, Buffer.concat(whole.flatMap((line) => [line, Buffer.from('\n')])));
          const report = await imports.imported(path);
          const { read, imported, alreadyThere, refused } = report.classes[className];
          expect(imported + alreadyThere + refused).toBe(read);
          expect(imported).toBeGreaterThan(1);
          for (const { error, line } of report.refusals) {
            expect(line).toBeLessThanOrEqual(lines.length + 1);
            expect(error).toMatch(/^\S.{5,}\.$/s);
          }
          const there = await imports.asMaster(
            `/${areUsers ? 'users' : 'installations'}/${sound.objectId}`,
          );
          expect(there.status).toBe(200);
        },
      ),
      { cases: 6 },
    );
  }, 600_000);

  test('that is compressed is imported up to the damage, or refused', async () => {
    await fuzz(
      fc.asyncProperty(mutated(file.map((bytes) => gzipSync(bytes))), async (bytes) => {
        const path = join(imports.folder, `_Installation.${newId()}.jsonl.gz`);
        await writeFile(path, bytes);
        try {
          const { classes } = await imports.imported(path);
          const {
            read = 0,
            imported = 0,
            alreadyThere = 0,
            refused = 0,
          } = classes._Installation ?? {};
          expect(imported + alreadyThere + refused).toBe(read);
        } catch (error) {
          // A heading with an unknown class is a usage error.
          if (!(error instanceof CommandFailure || error instanceof UsageError)) throw error;
        }
      }),
      { cases: 6 },
    );
  }, 600_000);
});
