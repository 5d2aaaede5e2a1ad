import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { apnsCredentials } from '../../../connectors/apns/credentials.ts';
import { apnsConnector } from '../../../connectors/apns/index.ts';
import { renderApns } from '../../../connectors/apns/payload.ts';
import { pushTypes } from '../../../connectors/apns/push-types.ts';
import { chooseApnsProfile } from '../../../connectors/apns/routing.ts';
import { bodyProblem } from '../../../ops/sandbox/apns/rules.ts';
import { createApnsCredentials } from '../../../ops/sandbox/apns/server.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { reason, reasonText } from '../../../shared/domain/reasons.ts';
import {
  type ApnsFixture,
  aContext,
  aMessage,
  calmTuning,
  recipients,
  sendAll,
  startApnsFixture,
  topic,
} from '../../support/gateways/apns.ts';
import {
  activity,
  atS,
  ofType,
  rightContents,
  start,
} from '../../support/gateways/apns-contents.ts';

const errorOf = (data: JsonObject): string => {
  const rendering = renderApns(aMessage(data));
  return rendering.ok ? 'none' : reasonText(rendering.error);
};

describe('the table of push types', () => {
  test('has a valid push of every type in this file', () => {
    expect(new Set(rightContents.map(([type]) => type))).toEqual(new Set(pushTypes.keys()));
  });

  let bench: ApnsFixture;
  beforeAll(async () => {
    bench = await startApnsFixture();
  });
  afterAll(() => bench.close());

  test.each(rightContents)(
    '%s: the gateway accepts %j with its topic, priority and expiration',
    async (type, data, sent, body) => {
      bench.gateway.forget();
      const expiresAtMs = aMessage().createdAtMs + 60_000;
      const { attempts } = await sendAll(
        bench.sender,
        recipients(1),
        aMessage(data, { expiresAtMs }),
      );
      expect(attempts).toEqual([{ kind: 'sent' }]);
      const [request] = bench.gateway.requests;
      expect(JSON.parse(String(request?.body))).toEqual(body);
      expect(request?.headers).toMatchObject({
        'apns-topic': `${topic}${sent.suffix}`,
        'apns-push-type': type,
        'apns-priority': sent.priority,
        'apns-expiration': sent.expiration ?? String(Math.ceil(expiresAtMs / 1000)),
      });
    },
  );

  test.each(rightContents)('%s: only the priorities of the type are accepted', (type, data) => {
    const accepted = [10, 5, 1, 7, 0].filter(
      (priority) => errorOf({ ...data, 'apns-priority': priority }) === 'none',
    );
    expect(accepted.map(String)).toEqual(pushTypes.get(type)?.priorities);
    expect(errorOf({ ...data, 'apns-priority': 7 })).toBe('apns-priority must be 10, 5 or 1');
  });

  test.each(rightContents)('%s: one byte more than the limit is refused', (type, data) => {
    const sizeOf = (more: string) => {
      const rendering = renderApns(aMessage({ ...data, pad: more }));
      return rendering.ok ? rendering.payload.body.length : 0;
    };
    const maxBytes = type === 'voip' ? 5120 : 4096;
    const pad = 'x'.repeat(maxBytes - sizeOf(''));
    expect(sizeOf(pad)).toBe(maxBytes);
    expect(errorOf({ ...data, pad: `${pad}x` })).toBe(
      `the iOS payload has ${maxBytes + 1} bytes; APNs takes at most ${maxBytes}`,
    );
  });

  test.each(rightContents.filter(([type]) => type !== 'alert' && type !== 'background'))(
    '%s needs the aps layout, unless its body has none',
    (type, data) => {
      const { aps: _, ...plain } = data;
      const isFree = ['fileprovider', 'mdm', 'pushtotalk'].includes(type);
      expect(errorOf({ alert: 'for Android', ...plain })).toBe(
        isFree
          ? 'none'
          : `apns-push-type must be one of alert, background in the plain layout; ${type} needs the layout of aps`,
      );
    },
  );
});

describe('a body without aps', () => {
  test.each(['mdm', 'fileprovider', 'pushtotalk'])('of the type %s', (type) => {
    const own = { k: 1 };
    expect(errorOf(ofType(type, {}))).toBe(`a push of the type ${type} needs members beside aps`);
    expect(errorOf(ofType(type, { aps: { alert: 'a' }, ...own }))).toMatch(
      /^aps\.alert must not be given: .* without aps$/,
    );
    expect(errorOf(ofType(type, { ios: { badge: 1 }, ...own }))).toMatch(
      /^ios\.badge must not be given/,
    );
    // The plain members are for other kinds of devices.
    const rendering = renderApns(
      aMessage(ofType(type, { alert: 'for Android', badge: 1, ...own })),
    );
    expect(rendering.ok && String(rendering.payload.body)).toBe('{"k":1}');
  });
});

describe('a background push', () => {
  const background = { 'apns-push-type': 'background', 'content-available': 1 };

  test('omits what the plain layout shows on other devices', () => {
    const data = { ...background, alert: 'for Android', title: 't', badge: 1, sound: 's', k: 1 };
    const rendering = renderApns(aMessage(data));
    expect(rendering.ok && rendering.payload).toMatchObject({
      pushType: 'background',
      priority: '5',
    });
    expect(rendering.ok && JSON.parse(String(rendering.payload.body))).toEqual({
      aps: { 'content-available': 1 },
      k: 1,
    });
  });

  test.each<[string, JsonObject]>([
    ['aps.alert', { aps: { alert: 'a', 'content-available': 1 }, 'apns-push-type': 'background' }],
    ['aps.badge', { aps: { badge: 0, 'content-available': 1 }, 'apns-push-type': 'background' }],
    ['aps.sound', { aps: { sound: 's', 'content-available': 1 }, 'apns-push-type': 'background' }],
    ['ios.alert', { ...background, ios: { alert: 'a' } }],
    ['ios.aps.badge', { ...background, ios: { aps: { badge: 'Increment' } } }],
  ])('is refused if %s is for Apple alone', (path, data) => {
    expect(errorOf(data)).toBe(
      `${path} must not be given: a push of the type background shows nothing`,
    );
  });

  test.each<[string, JsonObject]>([
    ['an empty text', { 'content-available': 1, alert: '' }],
    ['no text', { 'content-available': 1 }],
    ['the layout of aps', { aps: { 'content-available': 1 } }],
    ['its own push type', background],
    ['both', { aps: { 'content-available': 1 }, 'apns-push-type': 'background' }],
  ])('with priority 10 is refused in every layout: %s', (_, data) => {
    expect(errorOf({ ...data, 'pgw-priority': 10 })).toMatch(
      /^pgw-priority must be 5 for a push of the type background/,
    );
    expect(errorOf({ ...data, 'pgw-priority': 5 })).toBe('none');
  });

  test.each<[JsonObject, string]>([
    [{ 'apns-push-type': 'background', k: 1 }, 'content-available must be given'],
    [{ 'apns-push-type': 'background', aps: {} }, 'aps.content-available must be given'],
    [{ 'apns-push-type': 'background', 'content-available': 0 }, 'content-available must be 1'],
  ])('needs content-available: %j', (data, error) => {
    expect(errorOf(data)).toContain(error);
  });
});

describe('a Live Activity', () => {
  test.each<[string, JsonObject]>([
    ['aps.event must be given', activityWithout('event', 'update')],
    ['aps.timestamp must be given', activityWithout('timestamp', 'update')],
    ['aps.timestamp must be given', activityWithout('timestamp', 'end')],
    ['aps.content-state must be given', activityWithout('content-state', 'start')],
    ['aps.content-state must be given', activityWithout('content-state', 'update')],
    ['aps.attributes-type must be given', activityWithout('attributes-type', 'start')],
    ['aps.attributes must be given', activityWithout('attributes', 'start')],
    ['aps.alert must be given', activityWithout('alert', 'start')],
    ['none', activityWithout('content-state', 'end')],
    ['none', activityWithout('alert', 'update')],
  ])('needs the members of its event: %s', (error, data) => {
    expect(errorOf(data)).toContain(error);
  });

  function activityWithout(name: string, event: string): JsonObject {
    const { aps, ...rest } = activity(event, event === 'start' ? start : {});
    const { [name]: _, ...others } = aps as JsonObject;
    return { ...rest, aps: others };
  }

  test.each<[string, JsonObject]>([
    ['aps.event must be start, update or end', { event: 'begin' }],
    ['aps.timestamp must be a time in epoch seconds', { timestamp: atS * 1000 }],
    ['aps.timestamp must be', { timestamp: '2026-11-26T00:00:00Z' }],
    ['aps.timestamp must be', { timestamp: -1 }],
    ['aps.stale-date must be', { 'stale-date': atS * 1000 }],
    ['aps.dismissal-date must be', { 'dismissal-date': 'now' }],
    ['aps.content-state must be an object', { 'content-state': 'stage' }],
    ['aps.content-state must be an object', { 'content-state': [1] }],
    ['aps.attributes must be an object', { attributes: [] }],
    ['aps.attributes-type must be', { 'attributes-type': '' }],
    ['aps.attributes-type must be', { 'attributes-type': { name: 'A' } }],
    ['aps.relevance-score must be a number', { 'relevance-score': 'high' }],
    ['aps.input-push-token must be 1', { 'input-push-token': 0 }],
    ['aps.input-push-channel must be', { 'input-push-channel': 5 }],
    [
      'aps.input-push-token and aps.input-push-channel',
      { 'input-push-token': 1, 'input-push-channel': 'c' },
    ],
    ['aps.alert must be an object with a title or a body', { alert: 'text' }],
    ['aps.alert must be an object with a title or a body', { alert: {} }],
    ['aps.alert.title must be', { alert: { title: 5 } }],
    ['aps.alert.title must be', { alert: { title: { 'loc-args': ['x'] } } }],
    ['aps.alert.body.loc-args must be', { alert: { body: { 'loc-key': 'k', 'loc-args': 'x' } } }],
    ['aps.alert.sound must be', { alert: { body: 'b', sound: { name: 's' } } }],
  ])('with a wrong member is refused: %s', (error, more) => {
    expect(errorOf(activity('start', { ...start, ...more }))).toContain(error);
  });

  test('accepts any relevance, although a notification accepts only 0 to 1', () => {
    for (const score of [75, -1, 0.5])
      expect(errorOf(activity('update', { 'relevance-score': score }))).toBe('none');
    expect(errorOf({ alert: 'a', 'relevance-score': 75 })).toBe(
      'relevance-score must be a number from 0 to 1',
    );
  });

  test('ignores the plain members, which belong to a notification', () => {
    const rendering = renderApns(
      aMessage({ alert: 'for Android', badge: 3, ios: { ...activity('update') } }),
    );
    expect(rendering.ok && JSON.parse(String(rendering.payload.body)).aps).toEqual({
      event: 'update',
      timestamp: atS,
      'content-state': { stage: 1 },
    });
  });
});

describe.each(['widgets', 'controls'])('a push to %s', (type) => {
  test.each<[string, JsonObject]>([
    ['aps.content-changed must be given', {}],
    ['aps.content-changed must be true', { 'content-changed': false }],
    ['aps.content-changed must be true', { 'content-changed': 'yes' }],
    ['aps.alert must not be given', { 'content-changed': true, alert: 'a' }],
    ['aps.badge must not be given', { 'content-changed': true, badge: 1 }],
  ])('is refused: %s', (error, aps) => {
    expect(errorOf(ofType(type, { aps }))).toContain(error);
  });
});

test.each<[JsonObject, string]>([
  [
    { alert: 'a', 'apns-push-type': 'loud' },
    'apns-push-type must be one of alert, background, voip',
  ],
  [{ alert: 'a', 'pgw-push-type': 5 }, 'pgw-push-type must be one of'],
  [{ alert: 'a', ios: { 'pgw-push-type': 'Alert' } }, 'ios.pgw-push-type must be one of'],
  [{ alert: 'a', 'apns-priority': 'high', 'pgw-priority': 10 }, 'apns-priority must be 10, 5 or 1'],
  [{ alert: 'a', 'pgw-priority': 10, 'apns-priority': 'high' }, 'apns-priority must be 10, 5 or 1'],
  [{ alert: 'a', 'collapse-id': 'é'.repeat(33) }, 'collapse-id must have at most 64 bytes'],
  [{ alert: 'a', ios: { 'collapse-id': 7 } }, 'ios.collapse-id must be a string'],
])('headers are checked under the name that was sent: %j', (data, error) => {
  expect(errorOf(data)).toContain(error);
});

test('every body in the table can be sent to a device', () => {
  for (const [type, data] of rightContents) {
    const rendering = renderApns(aMessage(data));
    expect(rendering.ok && bodyProblem(rendering.payload.body, type), type).toBeUndefined();
  }
});

describe('a certificate', () => {
  let bench: ApnsFixture;
  beforeAll(async () => {
    bench = await startApnsFixture();
  });
  afterAll(() => bench.close());

  async function certificate(topics?: string[]) {
    const client = await bench.gateway.authority.issueClient({
      commonName: topic,
      userId: topic,
      ...(topics ? { topics } : {}),
    });
    const { ca, url } = bench.gateway;
    return apnsCredentials.parse({ auth: 'certificate', ...client, topic, endpoint: url, ca });
  }
  const push = async (credentials: Awaited<ReturnType<typeof certificate>>, data: JsonObject) => {
    const sender = apnsConnector(calmTuning).open(credentials, aContext());
    const { attempts } = await sendAll(sender, recipients(1), aMessage(data));
    await sender.close();
    return attempts[0];
  };
  const choose = (credentials: Awaited<ReturnType<typeof certificate>>, data: JsonObject) =>
    chooseApnsProfile(
      [{ name: '_default', credentials }],
      { deviceProfile: '', topic: null, teamId: null },
      aMessage(data),
    );
  const talk = ofType('pushtotalk', { activeSpeaker: 'Ann' });

  test('serves only the topics that it lists; this is known before anything is sent', async () => {
    const credentials = await certificate([topic, `${topic}.voip-ptt`]);
    expect(await push(credentials, talk)).toEqual({ kind: 'sent' });
    expect(await push(credentials, { alert: 'a' })).toEqual({ kind: 'sent' });
    const total = bench.gateway.total;
    const call = ofType('voip', { aps: {} });
    const error = reason('certificateTopic', { topic: `${topic}.voip` });
    expect(await push(credentials, call)).toMatchObject({ kind: 'rejected', reason: error });
    expect(choose(credentials, call)).toEqual({ ok: false, error });
    expect(choose(credentials, talk)).toEqual({ ok: true, profile: '_default' });
    expect(bench.gateway.total).toBe(total);
  });

  test('serves mdm, also beside a token, which does not', async () => {
    const credentials = await certificate();
    const { publicKey: _, ...key } = createApnsCredentials();
    const token = { name: 'token', credentials: apnsCredentials.parse({ auth: 'token', ...key }) };
    const criteria = { deviceProfile: '', topic: null, teamId: null };
    const message = aMessage(ofType('mdm', { mdm: 'PushMagic' }));
    const both = [token, { name: '_default', credentials }];
    expect(chooseApnsProfile(both, criteria, message)).toEqual({ ok: true, profile: '_default' });
    expect(chooseApnsProfile([token], criteria, message)).toEqual({
      ok: false,
      error: reason('needsCertificate', { type: 'mdm' }),
    });
    expect(chooseApnsProfile(both, criteria, aMessage())).toEqual({ ok: true, profile: 'token' });
  });

  test('without a list is tried: APNs decides', async () => {
    const credentials = await certificate();
    expect(await push(credentials, talk)).toEqual({ kind: 'sent' });
    expect(choose(credentials, talk)).toEqual({ ok: true, profile: '_default' });
  });

  test('whose list lacks its own bundle id is tried: the list was not understood', async () => {
    const credentials = await certificate(['com.example.other']);
    expect(choose(credentials, talk)).toEqual({ ok: true, profile: '_default' });
  });

  test('serves no push of the type location, which the call already refuses', async () => {
    const error = reason('needsTokenAuthentication', { type: 'location' });
    const where = ofType('location', { aps: {} });
    expect(choose(await certificate(), where)).toEqual({ ok: false, error });
    expect(choose(await certificate([topic, `${topic}.location-query`]), where)).toEqual({
      ok: false,
      error,
    });
  });
});
