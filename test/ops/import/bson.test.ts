/** BSON backups: every form of dates, ids and pointers is read as the JSON export's record. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import {
  Binary,
  BSONRegExp,
  DBRef,
  Decimal128,
  Double,
  Int32,
  Long,
  ObjectId,
  serialize,
} from 'bson';
import { describe, expect, test } from 'vitest';
import { DocumentSplitter, maxDocumentBytes, parseDocument } from '../../../ops/import/bson.ts';
import { operatorMessage, Refusal } from '../../../shared/domain/errors/errors.ts';
import {
  anInstallation,
  aUser,
  newId,
  publicHash,
  useImports,
} from '../../support/import/imports.ts';

const fixture = useImports();
const created = '2025-07-02T07:58:45.609Z';
const updated = '2026-07-02T07:58:45.000Z';
const owner = newId();
const pointer = { __type: 'Pointer', className: '_User', objectId: owner };

/** Writes documents as a backup. */
async function backup(name: string, documents: object[]): Promise<string> {
  const bytes = Buffer.concat(documents.map((one) => serialize(one)));
  const path = join(fixture.folder, name);
  await writeFile(path, name.endsWith('.gz') ? gzipSync(bytes) : bytes);
  return path;
}
const read = (document: object) => parseDocument(Buffer.from(serialize(document)));

describe('a document', () => {
  const id = newId();
  const forms: [string, object, object][] = [
    ['an ObjectId', { _id: new ObjectId(id) }, { objectId: id }],
    ['an id as text', { _id: id }, { objectId: id }],
    ['a date', { createdAt: new Date(created) }, { createdAt: created }],
    ['milliseconds', { createdAt: Long.fromNumber(Date.parse(created)) }, { createdAt: created }],
    [
      'milliseconds as double',
      { createdAt: new Double(Date.parse(created)) },
      { createdAt: created },
    ],
    ['a time as text', { createdAt: created }, { createdAt: created }],
    ['a date of the app', { at: new Date(created) }, { at: { __type: 'Date', iso: created } }],
    [
      'a typed date',
      { at: { __type: 'Date', iso: new Date(created) } },
      { at: { __type: 'Date', iso: created } },
    ],
    ['a pointer', { owner: pointer }, { owner: pointer }],
    ['a DBRef', { owner: new DBRef('_User', new ObjectId(owner)) }, { owner: pointer }],
    ['$ref and $id', { owner: { $ref: '_User', $id: owner } }, { owner: pointer }],
    ['a pointer as text', { owner: `_User$${owner}` }, { owner: pointer }],
    ['a pointer as text in a list', { all: [`_User$${owner}`] }, { all: [pointer] }],
    ['a pointer under its stored name', { _p_owner: `_User$${owner}` }, { owner: pointer }],
    ['an ObjectId of the app', { other: new ObjectId(owner) }, { other: owner }],
    [
      'numbers',
      {
        a: new Int32(1),
        b: new Double(1.5),
        c: Long.fromString('7091800003790954036'),
        d: Long.fromNumber(5),
        e: Decimal128.fromString('12.5'),
      },
      { a: 1, b: 1.5, c: 7091800003790954036n, d: 5, e: 12.5 },
    ],
    [
      'bytes',
      { b: new Binary(Buffer.from('hello')) },
      { b: { __type: 'Bytes', base64: 'aGVsbG8=' } },
    ],
    ['null, lists and objects', { a: [true, null, { x: [] }] }, { a: [true, null, { x: [] }] }],
    ['members of the server', { _hashed: 'x', a: 1 }, { a: 1 }],
    ['a text with a dollar', { price: 'US$100 per month' }, { price: 'US$100 per month' }],
  ];
  test.each(forms)('with %s', (_, document, record) => {
    expect(read(document)).toEqual(record);
  });

  test.each([
    ['a pattern', { pattern: /x/ }, 'pattern has a value of the BSON type RegExp'],
    [
      'a pattern that is invalid in JavaScript',
      { pattern: new BSONRegExp('(?i)x') },
      'pattern has a value of the BSON type RegExp',
    ],
    ['not a number', { n: new Double(Number.NaN) }, 'n has a value of the BSON type NaN'],
    ['rights of another server', { _rperm: ['x'] }, 'It has _rperm'],
  ])('with %s is refused with the member', (_, document, message) => {
    let refusal: unknown;
    try {
      read(document);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(Refusal);
    expect(refusal instanceof Refusal && operatorMessage('en', refusal)).toContain(message);
  });

  test('that is nested too deeply is refused', () => {
    const depth = 3000;
    const length = 8 * depth + 5;
    const levels = Array.from({ length: depth }, (_, i) => {
      const head = Buffer.from([0, 0, 0, 0, 3, 0x61, 0]);
      head.writeInt32LE(length - 8 * i);
      return head;
    });
    const bytes = Buffer.concat([...levels, Buffer.from([5]), Buffer.alloc(4 + depth)]);
    expect(() => parseDocument(bytes)).toThrow(Refusal);
  });

  test('that is damaged is refused', () => {
    const bytes = Buffer.from(serialize({ a: 'text', b: { c: 1 } }));
    for (let at = 4; at < bytes.length; at++) {
      const damaged = Buffer.from(bytes);
      damaged[at] = 0xff;
      try {
        parseDocument(damaged);
      } catch (error) {
        expect(error).toBeInstanceOf(Refusal);
      }
    }
  });
});

describe('a stream of documents', () => {
  const documents = Array.from({ length: 40 }, (_, n) => serialize({ n, text: 'x'.repeat(n * 7) }));
  const whole = Buffer.concat(documents);

  test.each([1, 2, 3, 5, 100, 4096])('is split in chunks of %i bytes', (size) => {
    const splitter = new DocumentSplitter();
    const records = [];
    for (let at = 0; at < whole.length; at += size)
      records.push(...splitter.push(whole.subarray(at, at + size)));
    expect(splitter.end()).toEqual([]);
    expect(records.map(({ line }) => line)).toEqual(documents.map((_, n) => n + 1));
    expect(Buffer.concat(records.flatMap(({ bytes }) => bytes ?? []))).toEqual(whole);
  });

  test('ends with a clear line at bytes that are no document', () => {
    const length = Buffer.alloc(4);
    for (const [wrong, message] of [
      [3, 'no BSON document'],
      [-5, 'no BSON document'],
      [maxDocumentBytes + 1, 'longer than 16 MB'],
    ] as const) {
      length.writeInt32LE(wrong);
      const splitter = new DocumentSplitter();
      const records = splitter.push(Buffer.concat([documents[0] ?? length, length, whole]));
      expect(records).toHaveLength(2);
      expect(records[1]?.message).toContain(message);
      expect([...splitter.push(whole), ...splitter.end()]).toEqual([]);
    }
    const cut = new DocumentSplitter();
    cut.push(whole.subarray(0, whole.length - 1));
    expect(cut.end()).toMatchObject([{ line: 40, message: expect.stringContaining('middle') }]);
  });
});

describe('import', () => {
  const installations = Array.from({ length: 6 }, (_, n) =>
    anInstallation({
      level: n,
      createdAt: created,
      updatedAt: updated,
      channels: ['news', '新闻'],
      seenAt: { __type: 'Date', iso: created },
      user: pointer,
      orders: [7091800003790954036n],
      valid: true,
    }),
  );
  /** The same rows, each with other forms of ids, times and pointers. */
  const documents = installations.map(({ createdAt, objectId, ...more }, n) => ({
    _id: n % 2 ? objectId : new ObjectId(objectId),
    ...more,
    createdAt: [new Date(createdAt), Long.fromNumber(Date.parse(createdAt)), createdAt][n % 3],
    updatedAt: [updated, new Date(updated), Long.fromNumber(Date.parse(updated))][n % 3],
    seenAt: n % 2 ? new Date(created) : { __type: 'Date', iso: created },
    user: [pointer, `_User$${owner}`, new DBRef('_User', new ObjectId(owner))][n % 3],
    orders: [Long.fromString('7091800003790954036')],
  }));

  test('writes the same rows as from JSON lines', async () => {
    await backup('_Installation.x7f3.bson.gz', documents);
    const result = await fixture.importedByCommand(fixture.folder);
    expect(result).toMatchObject({
      code: 0,
      classes: { _Installation: { read: 6, imported: 6, refused: 0 } },
    });
    const rows = async () => {
      const all = await Promise.all(
        installations.map(({ objectId }) => fixture.installationAt(objectId)),
      );
      return all;
    };
    const fromBson = await rows();
    await fixture.db.query('DELETE FROM installation WHERE app_id = $1', [fixture.app.appId]);
    const path = await fixture.exportFile('_Installation.jsonl', installations);
    expect((await fixture.imported(path)).classes._Installation).toMatchObject({ imported: 6 });
    expect(fromBson).toEqual(await rows());
    expect(fromBson).toEqual(installations);
  });

  test('reads users, roles and memberships, and users log in', async () => {
    const salt = 'salt';
    const user = aUser();
    const { createdAt, objectId, ...members } = user;
    const password = publicHash('password', salt);
    await backup('_User.ab12.bson', [
      { _id: new ObjectId(objectId), ...members, createdAt: new Date(createdAt), salt, password },
    ]);
    const role = newId();
    await backup('_Role.ab12.bson.gz', [
      { _id: new ObjectId(role), name: 'editors', ACL: { '*': { read: true } } },
    ]);
    await backup('_Join:users:_Role.ab12.bson.gz', [
      { _id: new ObjectId(), owningId: new ObjectId(role), relatedId: new ObjectId(objectId) },
    ]);
    await backup('Post.ab12.bson.gz', [{ _id: new ObjectId(), title: 'x' }]);
    const result = await fixture.importedByCommand(fixture.folder);
    expect(result).toMatchObject({
      code: 0,
      classes: {
        _User: { imported: 1, refused: 0 },
        _Role: { imported: 1, refused: 0 },
        '_Join:users:_Role': { imported: 1, refused: 0 },
      },
    });
    expect(JSON.stringify(result)).toContain('holds the class Post');
    const login = await fixture.api.request('POST', '/1.1/login', {
      app: fixture.app,
      body: { username: user.username, password: 'password' },
    });
    expect(login.body).toMatchObject({ objectId });
  });

  test('refuses a bad document with its number, and imports the others', async () => {
    const [first, second] = documents;
    const path = await backup('_Installation.bson', [
      first ?? {},
      { ...second, pattern: /x/ },
      { ...documents[2], _id: 7 },
    ]);
    const result = await fixture.importedByCommand(path);
    expect(result).toMatchObject({
      code: 1,
      classes: { _Installation: { read: 3, imported: 1, refused: 2 } },
    });
    expect(JSON.stringify(result.refusals)).toContain('BSON type RegExp');
    expect(result.refusals).toMatchObject([{ line: 2 }, { line: 3 }]);
  });
});
