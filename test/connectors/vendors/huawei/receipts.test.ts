import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { ReceiptCall, ReceiptsResult } from '../../../../connectors/contract/connector.ts';
import { huawei } from '../../../../connectors/vendors/huawei/index.ts';
import {
  createHuaweiApp,
  type HuaweiReceipt,
  huaweiReceipt,
} from '../../../../ops/sandbox/vendors/huawei/server.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';

const { appId, appSecret } = createHuaweiApp();
const profile = { appId, appSecret };

const read = (call: ReceiptCall, profiles: object[] = [profile]) =>
  huawei.receipts?.(
    call,
    profiles.map((one) => huawei.credentials.parse(one)),
  );

function receiptsOf(parsed: ReceiptsResult | undefined) {
  if (!parsed?.ok) throw new Error(parsed?.error ?? 'no receipts');
  return parsed.receipts;
}

const one: HuaweiReceipt = {
  token: 'T1',
  status: 0,
  biTag: 'PushRecord000001',
  requestId: '157',
  timestamp: 1489993883189,
};

describe('receipts of Huawei', () => {
  test('contain push, message, device and time', () => {
    expect(read(huaweiReceipt(appId, [one]))).toEqual({
      ok: true,
      reply: { code: '0', message: 'success' },
      receipts: [
        {
          objectId: 'PushRecord000001',
          messageId: '157',
          deviceToken: 'T1',
          event: 'delivered',
          code: '0',
          atMs: 1489993883189,
        },
      ],
    });
  });

  test('of the v3 API contain the same in another form', () => {
    expect(receiptsOf(read(huaweiReceipt(appId, [{ ...one, pushType: 0 }])))).toEqual(
      receiptsOf(read(huaweiReceipt(appId, [one]))),
    );
  });

  test.each<[number, string]>([
    [0, 'delivered'],
    [2, 'dead_token'],
    [5, 'dead_token'],
    [6, 'suspended'],
    [10, 'suspended'],
    [15, 'undelivered'],
    [27, 'undelivered'],
    [102, 'undelivered'],
    [201, 'suspended'],
    [256, 'undelivered'],
    [4711, 'undelivered'],
  ])('status %i is %s', (status, event) => {
    expect(receiptsOf(read(huaweiReceipt(appId, [{ ...one, status }])))[0]).toMatchObject({
      event,
      code: String(status),
      ...(event === 'dead_token' ? { needsConfirmation: true } : {}),
    });
  });

  test('without our tag contain the message id', () => {
    const [receipt] = receiptsOf(
      read(huaweiReceipt(appId, [{ ...one, biTag: 'a tag of theirs' }])),
    );
    expect(receipt).toMatchObject({ objectId: null, messageId: '157' });
  });

  test('with a signature are refused if it is invalid and a profile has the key', () => {
    const keyed = { ...profile, callbackKey: 'key', callbackUser: 'user' };
    const signed = huaweiReceipt(appId, [one], { key: 'key', user: 'user' });
    expect(read(signed, [profile, keyed])?.ok).toBe(true);
    const forged = [
      huaweiReceipt(appId, [one]),
      huaweiReceipt(appId, [one], { key: 'other', user: 'user' }),
      huaweiReceipt(appId, [one], { key: 'key', user: 'nobody' }),
      { ...signed, headers: { 'x-huawei-callback-id': 'value=' } },
    ];
    for (const call of forged)
      expect(read(call, [profile, keyed])).toMatchObject({ ok: false, status: 401 });
    // Without a key in a profile, signatures are not checked.
    expect(read(signed)?.ok).toBe(true);
  });

  test.each<[string, number, boolean]>([
    ['now', 0, true],
    ['14 minutes ago', -14, true],
    ['16 minutes ago', -16, false],
    ['a year ago', -525_600, false],
    ['4 minutes ahead', 4, true],
    ['6 minutes ahead', 6, false],
  ])('that were signed %s are judged by their age', (_, minutes, isTaken) => {
    const keyed = { ...profile, callbackKey: 'key', callbackUser: 'user' };
    const receivedAtMs = 1_790_000_000_000;
    const signedAtMs = receivedAtMs + minutes * 60_000;
    const call = huaweiReceipt(appId, [one], { key: 'key', user: 'user', signedAtMs });
    expect(read({ ...call, receivedAtMs }, [keyed])?.ok).toBe(isTaken);
    // Without a key in a profile, neither signature nor age is checked.
    expect(read({ ...call, receivedAtMs })?.ok).toBe(true);
  });

  test.each(['', 'x', '-1', '1e3', '0x1', ' 1790000000000', '99999999999999999999'])(
    'that were signed at %j are refused, even if the signature matches',
    (timestamp) => {
      const keyed = { ...profile, callbackKey: 'key', callbackUser: 'user' };
      const value = createHmac('sha256', 'key').update(`${timestamp}nuser`).digest('base64');
      const headers = { 'x-huawei-callback-id': `timestamp=${timestamp}; nonce=n; value=${value}` };
      const { body } = huaweiReceipt(appId, [one]);
      expect(read({ headers, body, receivedAtMs: 1_790_000_000_000 }, [keyed])).toMatchObject({
        ok: false,
        status: 401,
      });
    },
  );

  test.each([
    '',
    'x',
    '[]',
    '{}',
    '{"statuses":{}}',
    JSON.stringify({ statuses: Array(1001).fill({}) }),
  ])('with an invalid body are refused: %.30s', (body) => {
    expect(read({ headers: {}, body })).toMatchObject({ ok: false, status: 400 });
  });

  test.each<JsonObject[]>([
    [{}],
    [{ token: 5, status: 0 }],
    [{ token: 'T', status: {} }],
    [{ token: 'T', deliveryStatus: [] }],
  ])('omit an invalid status: %j', (status) => {
    const body = JSON.stringify({
      statuses: [status, null, 5, { token: 'T', status: 0, timestamp: 'x' }],
    });
    expect(receiptsOf(read({ headers: {}, body }))).toMatchObject([
      { deviceToken: 'T', atMs: null },
    ]);
  });
});
