import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { AttemptResult } from '../../../connectors/contract/connector.ts';
import { defaultTuning } from '../../../connectors/fcm/client.ts';
import { fcmConnector } from '../../../connectors/fcm/index.ts';
import { responseRules, ruleForResponse } from '../../../connectors/fcm/responses.ts';
import {
  createServiceAccount,
  errorBody,
  type FcmGateway,
  startFcmGateway,
} from '../../../ops/sandbox/fcm/server.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { httpReason, reasonText } from '../../../shared/domain/reasons.ts';
import { aContext, aMessage, kinds, recipients, sendAll } from '../../support/gateways/apns.ts';
import type { TestContext } from '../../support/gateways/sender-context.ts';
import { fcmToken, fid } from './fixture.ts';

const account = createServiceAccount();
let gateway: FcmGateway;

beforeAll(async () => {
  gateway = await startFcmGateway({ account });
});
afterAll(() => gateway.close());
afterEach(() => {
  gateway.behave();
  gateway.forget();
  gateway.deadTokens.clear();
  gateway.foreignTokens.clear();
});

const shortDrain = { ...defaultTuning, timing: { ...defaultTuning.timing, drainMs: 500 } };

const makeRecipients = (count: number) =>
  recipients(count, { deviceType: 'android' }).map((one) => ({
    ...one,
    deviceToken: fcmToken(one.index),
  }));

async function push(
  count: number,
  options: {
    context?: TestContext;
    credentials?: JsonObject;
    data?: JsonObject;
    to?: ReturnType<typeof makeRecipients>;
  } = {},
) {
  const {
    context = aContext(),
    credentials = {},
    data = { alert: 'a' },
    to = makeRecipients(count),
  } = options;
  const connector = fcmConnector('fcm', shortDrain);
  const profile = {
    serviceAccount: account,
    endpoint: gateway.url,
    authEndpoint: gateway.url,
    ca: gateway.ca,
  };
  const sender = connector.open(
    connector.credentials.parse({ ...profile, ...credentials }),
    context,
  );
  const outcome = await sendAll(sender, to, aMessage(data));
  await sender.close();
  return outcome;
}

const rpc = (type: string, more: object) => ({
  '@type': `type.googleapis.com/google.${type}`,
  ...more,
});
const badField = (field: string) =>
  rpc('rpc.BadRequest', { fieldViolations: [{ field, description: 'd' }] });
const apnsError = (reason: string) => rpc('firebase.fcm.v1.ApnsError', { statusCode: 410, reason });
const quotaOf = (subject: string) =>
  rpc('rpc.QuotaFailure', { violations: [{ subject, description: 'd' }] });
const noToken = 'The registration token is not a valid FCM registration token';

interface Case {
  rule: string;
  status: number;
  error: {
    status: string;
    errorCode?: string;
    message?: string;
    details?: Record<string, unknown>[];
  };
  kind: AttemptResult['kind'];
  reason: string;
  /** Registration id. The default is a registration token. */
  deviceToken?: string;
  afterMs?: number | null;
}

/**
 * Expected result of each reply (protocol/fcm.md#answers). The list is independent of the
 * connector's table.
 */
const invalid = { status: 'INVALID_ARGUMENT', errorCode: 'INVALID_ARGUMENT' };
const cases: Case[] = [
  {
    rule: '400 INVALID_ARGUMENT token',
    status: 400,
    error: { ...invalid, message: noToken },
    kind: 'invalid_token',
    reason: 'invalid_token',
  },
  {
    rule: '400 INVALID_ARGUMENT token',
    status: 400,
    error: { ...invalid, message: noToken, details: [badField('message.token')] },
    kind: 'invalid_token',
    reason: 'invalid_token',
  },
  {
    rule: '400 INVALID_ARGUMENT apns',
    status: 400,
    error: {
      ...invalid,
      message: 'APNs device token is disabled.',
      details: [apnsError('Unregistered')],
    },
    kind: 'invalid_token',
    reason: 'apns_token_dead',
  },
  {
    rule: '400 INVALID_ARGUMENT apns',
    status: 400,
    error: { ...invalid, details: [apnsError('BadDeviceToken')] },
    kind: 'invalid_token',
    reason: 'apns_token_dead',
  },
  {
    rule: '400 INVALID_ARGUMENT message',
    status: 400,
    error: { status: 'INVALID_ARGUMENT', details: [badField('message.data[0].value')] },
    kind: 'rejected',
    reason: 'invalid_message',
  },
  {
    rule: '400 INVALID_ARGUMENT message',
    status: 400,
    error: { ...invalid, message: noToken, details: [badField('message.android.ttl')] },
    kind: 'rejected',
    reason: 'invalid_message',
  },
  {
    rule: '400 INVALID_ARGUMENT target',
    status: 400,
    error: { ...invalid, details: [badField('message.token')] },
    kind: 'rejected',
    reason: 'invalid_target',
  },
  {
    rule: '400 INVALID_ARGUMENT',
    status: 400,
    error: { ...invalid, message: 'Something else.' },
    kind: 'rejected',
    reason: 'invalid_argument',
  },
  {
    rule: '400 INVALID_ARGUMENT',
    status: 400,
    error: { ...invalid, details: [apnsError('PayloadTooLarge')] },
    kind: 'rejected',
    reason: 'invalid_argument',
  },
  {
    rule: '400 INVALID_ARGUMENT size',
    status: 400,
    error: {
      ...invalid,
      message: 'Android message is too big',
      details: [{ '@type': 'type.googleapis.com/google.rpc.BadRequest' }],
    },
    kind: 'rejected',
    reason: 'message_too_large',
  },
  {
    rule: '404 UNREGISTERED',
    status: 404,
    error: { status: 'NOT_FOUND', errorCode: 'UNREGISTERED' },
    kind: 'invalid_token',
    reason: 'unregistered',
  },
  {
    rule: '404 UNREGISTERED fid',
    status: 404,
    error: { status: 'NOT_FOUND', errorCode: 'UNREGISTERED' },
    kind: 'invalid_token',
    reason: 'fid_unregistered',
    deviceToken: fid(1),
  },
  {
    rule: '404 NOT_FOUND',
    status: 404,
    error: { status: 'NOT_FOUND' },
    kind: 'invalid_token',
    reason: 'not_found',
  },
  {
    rule: '403 SENDER_ID_MISMATCH',
    status: 403,
    error: { status: 'PERMISSION_DENIED', errorCode: 'SENDER_ID_MISMATCH' },
    kind: 'invalid_token',
    reason: 'sender_id_mismatch',
  },
  {
    rule: '403 PERMISSION_DENIED',
    status: 403,
    error: { status: 'PERMISSION_DENIED' },
    kind: 'profile_error',
    reason: 'permission_denied',
  },
  {
    rule: '401 UNAUTHENTICATED',
    status: 401,
    error: { status: 'UNAUTHENTICATED' },
    kind: 'profile_error',
    reason: 'unauthenticated',
  },
  {
    rule: '401 THIRD_PARTY_AUTH_ERROR',
    status: 401,
    error: { status: 'UNAUTHENTICATED', errorCode: 'THIRD_PARTY_AUTH_ERROR' },
    kind: 'rejected',
    reason: 'third_party_auth_error',
  },
  {
    rule: '401 APNS_AUTH_ERROR',
    status: 401,
    error: { status: 'UNAUTHENTICATED', errorCode: 'APNS_AUTH_ERROR' },
    kind: 'rejected',
    reason: 'third_party_auth_error',
  },
  {
    rule: '429 QUOTA_EXCEEDED',
    status: 429,
    error: { status: 'RESOURCE_EXHAUSTED', errorCode: 'QUOTA_EXCEEDED' },
    kind: 'retry',
    reason: 'quota_exceeded',
    afterMs: 60_000,
  },
  {
    rule: '429 QUOTA_EXCEEDED',
    status: 429,
    error: {
      status: 'RESOURCE_EXHAUSTED',
      errorCode: 'QUOTA_EXCEEDED',
      details: [quotaOf('project:1')],
    },
    kind: 'retry',
    reason: 'quota_exceeded',
    afterMs: 60_000,
  },
  {
    rule: '429 QUOTA_EXCEEDED device',
    status: 429,
    error: {
      status: 'RESOURCE_EXHAUSTED',
      errorCode: 'QUOTA_EXCEEDED',
      details: [quotaOf('device:abc')],
    },
    kind: 'retry',
    reason: 'device_rate_exceeded',
    afterMs: 60_000,
  },
  {
    rule: '429 RESOURCE_EXHAUSTED',
    status: 429,
    error: { status: 'RESOURCE_EXHAUSTED' },
    kind: 'retry',
    reason: 'quota_exceeded',
    afterMs: 60_000,
  },
  {
    rule: '429 RESOURCE_EXHAUSTED device',
    status: 429,
    error: { status: 'RESOURCE_EXHAUSTED', message: 'Device message rate exceeded' },
    kind: 'retry',
    reason: 'device_rate_exceeded',
    afterMs: 60_000,
  },
  {
    rule: '500 INTERNAL',
    status: 500,
    error: { status: 'INTERNAL', errorCode: 'INTERNAL' },
    kind: 'retry',
    reason: 'internal',
    afterMs: 10_000,
  },
  {
    rule: '500 UNSPECIFIED_ERROR',
    status: 500,
    error: { status: 'UNKNOWN', errorCode: 'UNSPECIFIED_ERROR' },
    kind: 'retry',
    reason: 'unspecified_error',
    afterMs: 10_000,
  },
  {
    rule: '499 CANCELLED',
    status: 499,
    error: { status: 'CANCELLED' },
    kind: 'unknown',
    reason: 'request_cancelled',
    afterMs: 10_000,
  },
  {
    rule: '504 DEADLINE_EXCEEDED',
    status: 504,
    error: { status: 'DEADLINE_EXCEEDED' },
    kind: 'unknown',
    reason: 'deadline_exceeded',
    afterMs: 10_000,
  },
  {
    rule: '503 UNAVAILABLE',
    status: 503,
    error: { status: 'UNAVAILABLE', errorCode: 'UNAVAILABLE' },
    kind: 'retry',
    reason: 'unavailable',
    afterMs: 10_000,
  },
];

const misbehave = (
  { status, error }: Pick<Case, 'status' | 'error'>,
  more: { retryAfter?: string; count?: number; token?: string } = {},
) =>
  gateway.misbehave({
    kind: 'answer',
    status,
    body: errorBody({ code: status, message: 'A message.', ...error }),
    ...more,
  });

describe('a reply of FCM', () => {
  test.each(cases)('$rule → $kind $reason', async (one) => {
    misbehave(one);
    const to = makeRecipients(1).map((to) => ({
      ...to,
      deviceToken: one.deviceToken ?? to.deviceToken,
    }));
    const { attempts } = await push(1, { to });
    expect(attempts[0]).toMatchObject({
      kind: one.kind,
      reason: one.reason,
      // A request with an unknown outcome is repeated like one without an answer.
      ...(one.kind === 'unknown' ? { isRepeatHidden: true } : { status: one.status }),
    });
    if (one.afterMs !== undefined) expect(attempts[0]).toMatchObject({ afterMs: one.afterMs });
  });

  test('every row of the table is in this list', () => {
    expect([...new Set(cases.map(({ rule }) => rule))].sort()).toEqual(
      responseRules.map(({ code }) => code).sort(),
    );
  });

  test.each([
    [400, 'SOMETHING_NEW', 'rejected'],
    [401, 'SOMETHING_NEW', 'profile_error'],
    [403, 'SOMETHING_NEW', 'profile_error'],
    [404, 'SOMETHING_NEW', 'profile_error'],
    [418, 'SOMETHING_NEW', 'rejected'],
    [429, 'SOMETHING_NEW', 'retry'],
    [502, 'SOMETHING_NEW', 'retry'],
  ] as const)(
    '%i with an unknown code is judged by its status and invalidates no token',
    async (status, code, kind) => {
      misbehave({ status, error: { status: code } });
      expect((await push(1)).attempts[0]).toMatchObject({
        kind,
        status,
        reason: httpReason(status),
      });
    },
  );

  test('from another server fails only this attempt: its 404 invalidates no token', () => {
    for (const body of [
      '<html>',
      '[]',
      'null',
      '{"error":5}',
      '{"error":{"details":5}}',
      '{"error":{"details":[5]}}',
    ])
      expect(ruleForResponse(404, body)).toMatchObject({
        reaction: 'retry',
        reason: httpReason(404),
      });
  });

  test('contains the retry time', async () => {
    misbehave({ status: 503, error: { status: 'UNAVAILABLE' } }, { retryAfter: '17' });
    expect((await push(1)).attempts[0]).toMatchObject({ kind: 'retry', afterMs: 17_000 });
  });
});

describe('the rest of a batch', () => {
  test('is not sent after a reply about the message', async () => {
    misbehave({
      status: 400,
      error: { status: 'INVALID_ARGUMENT', details: [badField('message.android.ttl')] },
    });
    expect(kinds(await push(1000))).toEqual({ rejected: 1000 });
    expect(gateway.total).toBeLessThan(1000);
  });

  test('waits if the project’s quota is used up', async () => {
    misbehave({ status: 429, error: { status: 'RESOURCE_EXHAUSTED' } }, { retryAfter: '30' });
    const { attempts } = await push(1000);
    expect(attempts.every((one) => one.kind === 'retry' && one.afterMs === 30_000)).toBe(true);
    expect(gateway.total).toBeLessThan(1000);
  });

  test('is sent if one device gets too many messages', async () => {
    const error = {
      status: 'RESOURCE_EXHAUSTED',
      errorCode: 'QUOTA_EXCEEDED',
      details: [quotaOf('device:x')],
    };
    misbehave({ status: 429, error }, { token: fcmToken(3) });
    expect(kinds(await push(200))).toEqual({ sent: 199, retry: 1 });
  });

  test('is not sent after the credentials were refused', async () => {
    misbehave({ status: 403, error: { status: 'PERMISSION_DENIED' } });
    expect(kinds(await push(1000))).toEqual({ profile_error: 1000 });
    expect(gateway.total).toBeLessThan(1000);
  });
});

describe('tokens', () => {
  test('that are unregistered, malformed or foreign get their own results', async () => {
    gateway.deadTokens.add(fcmToken(1));
    gateway.foreignTokens.add(fcmToken(2));
    const to = makeRecipients(6);
    Object.assign(to[3] ?? {}, { deviceToken: 'no-token-at-all' });
    Object.assign(to[4] ?? {}, { deviceToken: 'a"}} and "more":"' });
    const { attempts } = await push(6, { to });
    expect(
      attempts.map((one) => ('reason' in one ? `${one.kind} ${reasonText(one.reason)}` : one.kind)),
    ).toEqual([
      'sent',
      'invalid_token unregistered',
      'invalid_token sender_id_mismatch',
      'invalid_token invalid_token',
      'rejected the registration id is malformed',
      'sent',
    ]);
    expect(gateway.total).toBe(5);
    expect(gateway.violations).toEqual([]);
  });

  test.each([
    [403, { status: 'PERMISSION_DENIED', errorCode: 'SENDER_ID_MISMATCH' }],
    [404, { status: 'NOT_FOUND' }],
  ])(
    'that all seem to be of another project (%i) are kept: the credentials are wrong',
    async (status, error) => {
      misbehave({ status, error });
      const { attempts } = await push(1000);
      for (const attempt of attempts)
        expect(attempt).toMatchObject({ kind: 'profile_error', hint: 'fcmProject' });
      expect(gateway.total).toBeLessThan(1000);
    },
  );
});

describe('a message that was sent', () => {
  test('has the message id of FCM, in a push to few devices', async () => {
    const { attempts } = await push(2);
    expect(attempts[0]).toMatchObject({
      kind: 'sent',
      messageId: expect.stringMatching(/^0:\d+%31bd1c96/),
    });
  });

  test('reaches each of 3,000 devices once, with its own token in the same body', async () => {
    const outcome = await push(3000);
    expect(kinds(outcome)).toEqual({ sent: 3000 });
    expect(gateway.distinct).toBe(3000);
    expect(
      makeRecipients(3000).every(({ deviceToken }) => gateway.delivered(deviceToken) === 1),
    ).toBe(true);
    expect(gateway.violations).toEqual([]);
    expect(gateway.tokenCalls).toBe(1);
  });

  test('without a reply reports whether the device would hide a repeat', async () => {
    gateway.misbehave({ kind: 'reset' });
    expect((await push(1)).attempts[0]).toMatchObject({ kind: 'unknown', isRepeatHidden: true });
    const silent = await push(1, { data: { silent: true } });
    expect(silent.attempts[0]).toMatchObject({ kind: 'unknown', isRepeatHidden: false });
  });
});

describe('the service account', () => {
  test('with another key, another address or a wrong clock is refused with a hint', async () => {
    const other = createServiceAccount();
    const now = Date.parse('2026-11-21T10:00:00Z');
    const wrong: [JsonObject, TestContext][] = [
      [{ ...account, private_key: other.private_key }, aContext()],
      [{ ...account, client_email: 'nobody@example.com' }, aContext()],
      [{ ...account, private_key_id: 'another' }, aContext()],
      [{ ...account, token_uri: 'https://example.com/token' }, aContext()],
      [{ ...account }, aContext({ now: () => now - 9e9, monotonicMs: () => performance.now() })],
    ];
    for (const [serviceAccount, context] of wrong) {
      const { attempts } = await push(2, { credentials: { serviceAccount }, context });
      expect(attempts[0]).toMatchObject({
        kind: 'profile_error',
        status: 400,
        reason: 'credentials_refused',
      });
      expect(JSON.stringify(attempts)).not.toContain('PRIVATE');
    }
    expect(gateway.total).toBe(0);
  });

  test('cannot be used with a private address of FCM, which is a profile error', async () => {
    const credentials = { endpoint: gateway.url.replace('127.0.0.1', '10.255.255.1') };
    expect((await push(2, { credentials })).attempts).toEqual(
      Array(2).fill({
        kind: 'profile_error',
        status: 0,
        reason: 'address_refused',
        hint: 'privateAddress',
        cause: 'ADDRESS_REFUSED',
      }),
    );
  });

  test('of another project is refused by FCM itself', async () => {
    const serviceAccount = { ...account, project_id: 'another-project' };
    expect((await push(2, { credentials: { serviceAccount } })).attempts[0]).toMatchObject({
      kind: 'profile_error',
      reason: 'permission_denied',
    });
  });

  test('is accepted in the older form of a key file', async () => {
    const { createPrivateKey } = await import('node:crypto');
    const pkcs1 = createPrivateKey(account.private_key)
      .export({ type: 'pkcs1', format: 'pem' })
      .toString();
    expect(
      kinds(await push(1, { credentials: { serviceAccount: { ...account, private_key: pkcs1 } } })),
    ).toEqual({
      sent: 1,
    });
  });
});
