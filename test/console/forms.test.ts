import { expect, test } from 'vitest';
import { z } from 'zod';
import { credentialsOf } from '../../connectors/registry.ts';
import { shapesOf } from '../../ops/console/src/kit/form/schema.ts';
import { changesOf, editableOf, objectOf, textOf } from '../../ops/console/src/kit/form/values.ts';
import {
  emptyEntered,
  requestOf,
} from '../../ops/console/src/pages/live-activities/activity-body.ts';
import { readDroppedFile } from '../../ops/console/src/pages/manage/profiles/dropped-file.ts';
import {
  connectorChanges,
  isSlower,
} from '../../ops/console/src/pages/pushes/compare/differences.ts';
import { profileConnectorIds } from '../../shared/domain/labels.ts';

const credentialShapes = (id: (typeof profileConnectorIds)[number]) => {
  const schema = credentialsOf(id);
  return schema ? shapesOf(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })) : [];
};

const pem = '-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n';

test.each(profileConnectorIds)('the credentials form of %s has the members of its schema', (id) => {
  for (const { fields, constants } of credentialShapes(id)) {
    expect(fields.some(({ isRequired }) => isRequired)).toBe(true);
    const known = [...Object.keys(constants), ...fields.map(({ name }) => name)];
    expect(known).toEqual(expect.arrayContaining(['endpoint', 'ca']));
  }
});

test('a form keeps types, leaves out empty members, and names missing ones', () => {
  const [shape] = shapesOf({
    type: 'object',
    properties: {
      name: { type: 'string' },
      rate: { type: 'integer', minimum: 1, maximum: 10 },
      topics: { type: 'array', items: { type: 'string' } },
      isOn: { type: 'boolean' },
      account: { type: 'object' },
      url: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    },
    required: ['name'],
  });
  const fields = shape?.fields ?? [];
  const value = {
    name: 'x',
    rate: 7,
    topics: ['a', 'b'],
    isOn: false,
    account: { n: 1 },
    url: null,
  };
  const draft = Object.fromEntries(
    fields.map((field) => [
      field.name,
      textOf(field, new Map(Object.entries(value)).get(field.name)),
    ]),
  );
  expect(objectOf(fields, draft)).toEqual({ object: value, faults: {} });
  expect(objectOf(fields, { rate: 'many', account: '{' })).toEqual({
    object: { url: null },
    faults: { name: 'required', rate: 'number', account: 'json' },
  });
});

test("a vendor's file fills the members that it contains", () => {
  const [token = [], certificate = []] = credentialShapes('apns').map(({ fields }) => fields);
  expect(readDroppedFile(token, 'apns', { name: 'AuthKey_ABCDE12345.p8', text: pem })).toEqual({
    draft: { privateKey: pem, keyId: 'ABCDE12345' },
  });
  const both = `-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n${pem}`;
  const pair = readDroppedFile(certificate, 'apns', { name: 'a.pem', text: `${both}${both}` });
  expect('draft' in pair && Object.keys(pair.draft)).toEqual(['certificate', 'privateKey']);
  expect('draft' in pair && pair.draft.certificate?.match(/BEGIN/g)).toHaveLength(2);
  const [fcm = []] = credentialShapes('fcm').map(({ fields }) => fields);
  const account = { type: 'service_account', project_id: 'p', private_key: pem };
  const file = { name: 'account.json', text: `\ufeff${JSON.stringify(account)}` };
  const filled = readDroppedFile(fcm, 'fcm', file);
  expect('draft' in filled && JSON.parse(filled.draft.serviceAccount ?? '')).toEqual(account);
});

test('the guide of a connector reads the files of its vendor', () => {
  const read = (connector: 'fcm' | 'vendor_a' | 'apns', document: object) => {
    const [fields = []] = credentialShapes(connector).map((shape) => shape.fields);
    return readDroppedFile(fields, connector, { name: 'a.json', text: JSON.stringify(document) });
  };
  expect(read('vendor_a', { client: { app_id: '101234567', client_secret: 'x' } })).toEqual({
    draft: { appId: '101234567' },
    lacks: expect.stringContaining('does not hold the App secret'),
  });
  expect(read('fcm', { project_info: {}, client: [] })).toEqual({
    fault: { sentence: expect.stringContaining('google-services.json') },
  });
  expect(read('fcm', { type: 'external_account' })).toEqual({
    fault: { sentence: expect.stringContaining('workload identity federation') },
  });
  expect(read('fcm', { hello: 1 })).toEqual({ fault: 'unknownFile' });
  const binary = { name: 'push.p12', text: '0\u0082\u0000' };
  expect(readDroppedFile([], 'apns', binary)).toEqual({ fault: 'binaryFile' });
  expect(readDroppedFile([], 'apns', { name: 'notes.txt', text: 'hello' })).toEqual({
    fault: 'unknownFile',
  });
});

test('an edited document is written as its differences', () => {
  const before = editableOf({ objectId: 'o', createdAt: 'c', city: 'Rome', tags: ['a'], old: 1 });
  expect(before).toEqual({ city: 'Rome', tags: ['a'], old: 1 });
  expect(changesOf(before, { city: 'Rome', tags: ['a', 'b'], objectId: 'other' })).toEqual({
    tags: ['a', 'b'],
    old: { __op: 'Delete' },
  });
});

test('a comparison highlights connectors that failed more, given enough recipients', () => {
  const before = {
    apns: { sent: 990, failed: 10 },
    vendor_d: { sent: 999, failed: 1 },
    fcm: { sent: 19 },
  };
  const after = {
    apns: { sent: 99, invalid_token: 1 },
    vendor_d: { sent: 958, failed: 42 },
    fcm: { failed: 19 },
  };
  const marks = connectorChanges(before, after).map(({ connector, isWorse }) => [
    connector,
    isWorse,
  ]);
  expect(marks).toEqual([
    ['vendor_d', true],
    ['apns', false],
    ['fcm', null],
  ]);
  expect([
    isSlower(400, 900),
    isSlower(400, 1200),
    isSlower(null, 5000),
    isSlower(3000, 5000),
  ]).toEqual([false, true, false, false]);
});

test('a Live Activity has the priority that its form shows', () => {
  const entered = { ...emptyEntered, action: 'broadcast', priority: '1' } as const;
  expect(requestOf(entered)?.body).toMatchObject({ priority: 1 });
  expect(requestOf({ ...entered, action: 'update' })?.body).not.toHaveProperty('priority');
});
