import { describe, expect, test } from 'vitest';
import { Vault } from '../../../../shared/crypto.ts';
import {
  insertOutboxMessage,
  recordDelivery,
  settleMessage,
} from '../../../../shared/db/tables/outbox.ts';
import {
  insertGatewayMessages,
  listGatewayMessages,
} from '../../../../shared/db/tables/receipts.ts';
import { testConfig } from '../../../support/api.ts';
import { openTestDatabase } from '../../../support/database.ts';

const { db, url } = await openTestDatabase();
const vault = new Vault(testConfig(url).secrets);

/** Ids that another server returned, and their stored form. */
const ids: [name: string, id: string, stored: string][] = [
  ['a plain id', 'm-1', 'm-1'],
  ['an id with NUL', 'm\u0000-2', 'm-2'],
  ['an id of several NULs', '\u0000\u0000', ''],
  ['an id with a lone surrogate', 'm\ud800-3', 'm\ufffd-3'],
  ['an id with a surrogate pair', 'm😀-4', 'm😀-4'],
  ['an id that is cut within a surrogate pair', `${'x'.repeat(199)}😀`, `${'x'.repeat(199)}\ufffd`],
  ['a long id', 'y'.repeat(5000), 'y'.repeat(200)],
];

describe.each(ids)('%s', (_name, id, stored) => {
  test('of a gateway is saved with the other ids of its statement', async () => {
    const push = { appId: 'app1', pushId: ids.findIndex(([, one]) => one === id) + 1 };
    const batch = { ...push, batchId: 1, connector: 'xiaomi' };
    const messages = ['before', id, 'after'].map((messageId) => ({ messageId, devices: 1 }));
    await insertGatewayMessages(db, [{ batch, messages }]);
    const key = { appId: 'app1', id: push.pushId };
    const rows = await listGatewayMessages(db, key, { after: null, limit: 10 });
    expect(rows.map(({ messageId }) => messageId)).toEqual(['before', stored, 'after']);
  });

  test('of a provider settles its message, and the receipt finds it', async () => {
    const sms = { isVoice: false, sign: 'My app', variables: {} };
    const message = { kind: 'sms', to: '+8613800000001', type: 'general', text: 'a', sms } as const;
    const outboxId = await insertOutboxMessage(db, vault, 'app1', message);
    const result = { state: 'sent', reason: null, providerId: id } as const;
    expect(await settleMessage(db, 'app1', outboxId, result)).toMatchObject({ kind: 'sms' });
    const receipt = { message: { providerId: id }, isDelivered: true, reason: null };
    expect(await recordDelivery(db, receipt)).toBe(true);
  });
});

test('a receipt for an app whose id contains NUL is unknown', async () => {
  const receipt = { message: { appId: 'a\u0000', id: '1' }, isDelivered: true, reason: null };
  expect(await recordDelivery(db, receipt)).toBe(false);
});
