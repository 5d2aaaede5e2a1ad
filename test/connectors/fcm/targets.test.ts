/** Tests registration tokens and Firebase installation ids (protocol/fcm.md#targets). */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { AttemptResult } from '../../../connectors/contract/connector.ts';
import { fcmConnector } from '../../../connectors/fcm/index.ts';
import { formOf } from '../../../connectors/fcm/payload.ts';
import {
  createServiceAccount,
  errorBody,
  type FcmGateway,
  startFcmGateway,
} from '../../../ops/sandbox/fcm/server.ts';
import { aContext, aMessage, kinds, recipients, sendAll } from '../../support/gateways/apns.ts';
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
  Object.assign(gateway.fids, { isKnown: true, isTokenToo: true });
});

async function push(targets: string[], data = { alert: 'a' }) {
  const connector = fcmConnector('fcm');
  const profile = {
    serviceAccount: account,
    endpoint: gateway.url,
    authEndpoint: gateway.url,
    ca: gateway.ca,
  };
  const sender = connector.open(connector.credentials.parse(profile), aContext());
  const to = recipients(targets.length, { deviceType: 'android' });
  const outcome = await sendAll(
    sender,
    to.map((one, i) => ({ ...one, deviceToken: targets[i] ?? '' })),
    aMessage(data),
  );
  await sender.close();
  return outcome.attempts;
}

const some = (make: (n: number) => string, count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => make(from + i));
const forms = (attempts: AttemptResult[]) => kinds({ attempts, reports: [] });
const messages = () => gateway.requests.map(({ body }) => JSON.parse(body.toString()).message);

describe('the form of a registration id', () => {
  test.each([
    ['c0123456789012345678_-', 'fid'],
    ['dXk1Zr2pQ0-9_AbCdEfGhI', 'fid'],
    ['eAAAAAAAAAAAAAAAAAAAAA', 'fid'],
    ['f_____________________', 'fid'],
    ['gAAAAAAAAAAAAAAAAAAAAA', 'token'],
    ['CAAAAAAAAAAAAAAAAAAAAA', 'token'],
    ['0AAAAAAAAAAAAAAAAAAAAA', 'token'],
    ['cAAAAAAAAAAAAAAAAAAAA', 'token'],
    ['cAAAAAAAAAAAAAAAAAAAAAA', 'token'],
    ['cAAAAAAAAAAAAAAAAAAAA=', 'token'],
    ['cAAAAAAAAAAAAAAAAAAAAA:APA91bXYZ', 'token'],
    ['c:', 'token'],
    [fcmToken(1), 'token'],
  ])('%s is a %s', (text, form) => {
    expect(formOf(text)).toBe(form);
  });
});

describe('a push to both forms', () => {
  test('names each target by its own member, and never both', async () => {
    const targets = [...some(fid, 60), ...some(fcmToken, 60)];
    expect(forms(await push(targets))).toEqual({ sent: 120 });
    for (const message of messages())
      expect(Object.keys(message).filter((name) => name === 'token' || name === 'fid')).toEqual([
        formOf(message.token ?? message.fid) === 'fid' ? 'fid' : 'token',
      ]);
    expect(new Set(messages().map(({ fid: id, token }) => id ?? token))).toEqual(new Set(targets));
    expect(gateway.violations).toEqual([]);
  });

  test('does so in a push with different texts', async () => {
    const connector = fcmConnector('fcm');
    const profile = {
      serviceAccount: account,
      endpoint: gateway.url,
      authEndpoint: gateway.url,
      ca: gateway.ca,
    };
    const sender = connector.open(connector.credentials.parse(profile), aContext());
    const ids = [fid(1), fcmToken(1)];
    const to = recipients(2).map((one) => ({ ...one, deviceToken: ids[one.index] ?? '' }));
    const results: string[] = [];
    await sender.sendTexts?.(
      {
        pushId: 1,
        message: aMessage(),
        report: (index, { kind }) => void results.splice(index, 1, kind),
        signal: new AbortController().signal,
      },
      {
        dataOf: (values) => ({ alert: values.get('name') ?? '' }),
        names: ['name'],
        groups: to.map((recipient, i) => ({
          recipients: [recipient],
          values: new Map([['name', `Tom ${i}`]]),
        })),
      },
    );
    await sender.close();
    const seen = messages().map(({ fid: id, token, notification }) => [
      id ?? token,
      notification.body,
    ]);
    expect(new Map(seen as [string, string][])).toEqual(
      new Map([
        [fid(1), 'Tom 0'],
        [fcmToken(1), 'Tom 1'],
      ]),
    );
  });

  test.each([true, false])(
    'needs no grace period for ids in the member token: granted %s',
    async (isTokenToo) => {
      gateway.fids.isTokenToo = isTokenToo;
      expect(forms(await push(some(fid, 5)))).toEqual({ sent: 5 });
    },
  );

  test('reports a deleted id by its own reason, which is no proof', async () => {
    gateway.deadTokens.add(fid(1)).add(fcmToken(1));
    const attempts = await push([fid(1), fcmToken(1), fid(2), fcmToken(2)]);
    expect(attempts).toMatchObject([
      {
        kind: 'invalid_token',
        status: 404,
        reason: 'fid_unregistered',
        form: 'fid',
        keepForMs: 86_400_000,
      },
      { kind: 'invalid_token', status: 404, reason: 'unregistered', form: 'token', isProof: true },
      { kind: 'sent', form: 'fid' },
      { kind: 'sent', form: 'token' },
    ]);
    expect(attempts[0]).not.toHaveProperty('isProof');
  });

  test('reaches tokens of a gateway that does not know ids, and fails the ids', async () => {
    gateway.fids.isKnown = false;
    const attempts = await push([...some(fid, 500), ...some(fcmToken, 100)]);
    expect(forms(attempts)).toEqual({ rejected: 500, sent: 100 });
    expect(
      gateway.requests.filter(({ tokens }) => formOf(tokens[0] ?? '') === 'fid').length,
    ).toBeLessThan(250);
  });

  test('reaches the ids if all tokens are refused alike', async () => {
    const body = errorBody({ code: 400, status: 'FAILED_PRECONDITION', message: 'x' });
    for (const token of some(fcmToken, 300))
      gateway.misbehave({ kind: 'answer', status: 400, body, token });
    const attempts = await push([...some(fcmToken, 300), ...some(fid, 100)]);
    expect(forms(attempts)).toEqual({ rejected: 300, sent: 100 });
  });

  test('ends for both if the quota of the project is used up', async () => {
    gateway.misbehave({
      kind: 'answer',
      status: 429,
      body: errorBody({ code: 429, status: 'RESOURCE_EXHAUSTED', message: 'x' }),
    });
    expect(forms(await push([...some(fid, 300), ...some(fcmToken, 300)]))).toEqual({ retry: 600 });
    expect(gateway.total).toBeLessThan(450);
  });

  test('with a refusal of the member fid fails only this device', async () => {
    const details = [
      {
        '@type': 'type.googleapis.com/google.rpc.BadRequest',
        fieldViolations: [{ field: 'message.fid', description: 'Invalid value' }],
      },
    ];
    const body = errorBody({ code: 400, status: 'INVALID_ARGUMENT', message: 'x', details });
    gateway.misbehave({ kind: 'answer', status: 400, body, token: fid(3) });
    const attempts = await push(some(fid, 10));
    expect(forms(attempts)).toEqual({ sent: 9, rejected: 1 });
    expect(attempts[3]).toMatchObject({ reason: 'invalid_target' });
  });
});
