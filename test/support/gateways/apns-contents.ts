import type { Json, JsonObject } from '../../../shared/domain/json.ts';

/** Valid push contents for APNs, for tests of the connector and of the external validator. */

export const atS = 1_790_000_000;
export const activity = (event: string, more: JsonObject = {}): JsonObject => ({
  aps: { event, timestamp: atS, 'content-state': { stage: 1 }, ...more },
  'apns-push-type': 'liveactivity',
});
export const start = {
  'attributes-type': 'OrderAttributes',
  attributes: { orderId: '1042' },
  alert: {
    title: { 'loc-key': 'order.title', 'loc-args': ['1042'] },
    body: 'It is on its way.',
    sound: 'default',
  },
};
export const ofType = (type: string, more: JsonObject): JsonObject => ({
  'apns-push-type': type,
  ...more,
});

/** A valid push of each type, and the request to APNs (Apple's documentation of 2026). */
export const rightContents: [
  type: string,
  data: JsonObject,
  sent: Record<string, string>,
  body: Json,
][] = [
  ['alert', { alert: 'a' }, { suffix: '', priority: '10' }, { aps: { alert: 'a' } }],
  [
    'alert',
    { alert: 'a', 'apns-priority': '1' },
    { suffix: '', priority: '1' },
    { aps: { alert: 'a' } },
  ],
  [
    'background',
    { 'content-available': true, k: 1 },
    { suffix: '', priority: '5' },
    { aps: { 'content-available': 1 }, k: 1 },
  ],
  [
    'voip',
    ofType('voip', { aps: {}, call: 7 }),
    { suffix: '.voip', priority: '10', expiration: '0' },
    { aps: {}, call: 7 },
  ],
  [
    'complication',
    ofType('complication', { aps: {}, k: 1 }),
    { suffix: '.complication', priority: '10' },
    { aps: {}, k: 1 },
  ],
  [
    'fileprovider',
    ofType('fileprovider', { aps: {}, 'container-identifier': 'c', domain: 'd' }),
    { suffix: '.pushkit.fileprovider', priority: '10' },
    { 'container-identifier': 'c', domain: 'd' },
  ],
  [
    'mdm',
    ofType('mdm', { mdm: 'PushMagic' }),
    { suffix: '', priority: '10' },
    { mdm: 'PushMagic' },
  ],
  [
    'location',
    ofType('location', { aps: {} }),
    { suffix: '.location-query', priority: '10' },
    { aps: {} },
  ],
  [
    'pushtotalk',
    ofType('pushtotalk', { aps: {}, activeSpeaker: 'Ann' }),
    { suffix: '.voip-ptt', priority: '10', expiration: '0' },
    { activeSpeaker: 'Ann' },
  ],
  [
    'liveactivity',
    activity('start', {
      ...start,
      'relevance-score': 75,
      'input-push-token': true,
      'stale-date': String(atS + 60),
    }),
    { suffix: '.push-type.liveactivity', priority: '10' },
    {
      aps: {
        event: 'start',
        timestamp: atS,
        'content-state': { stage: 1 },
        ...start,
        'relevance-score': 75,
        'input-push-token': 1,
        'stale-date': atS + 60,
      },
    },
  ],
  [
    'liveactivity',
    { ...activity('end', { 'dismissal-date': 0 }), 'apns-priority': 5 },
    { suffix: '.push-type.liveactivity', priority: '5' },
    { aps: { event: 'end', timestamp: atS, 'content-state': { stage: 1 }, 'dismissal-date': 0 } },
  ],
  [
    'widgets',
    ofType('widgets', { aps: { 'content-changed': 1 } }),
    { suffix: '.push-type.widgets', priority: '10' },
    { aps: { 'content-changed': true } },
  ],
  [
    'controls',
    ofType('controls', { aps: { 'content-changed': 'true' } }),
    { suffix: '.push-type.controls', priority: '10' },
    { aps: { 'content-changed': true } },
  ],
];
