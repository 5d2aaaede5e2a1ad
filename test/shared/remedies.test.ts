import { expect, test } from 'vitest';
import { reasonsByRemedy, remedyCodes, remedyOf } from '../../shared/domain/admin/remedies.ts';
import { type Outcome, outcomes } from '../../shared/domain/outcome.ts';
import {
  httpReason,
  reason,
  reasonAs,
  withCause,
  withHint,
  withStatus,
} from '../../shared/domain/reasons.ts';
import { codesOf, textIn } from '../../shared/domain/texts/catalogue.ts';

const listed: string[] = Object.values(reasonsByRemedy).flat();

test('every reason of the catalogue has exactly one remedy', () => {
  expect(listed.toSorted()).toEqual(codesOf('reasons').toSorted());
});

test('every remedy belongs to a cause, in both languages', () => {
  const used = new Set<string>([...Object.keys(reasonsByRemedy), 'dropped']);
  expect(remedyCodes.toSorted()).toEqual([...used].toSorted());
  for (const outcome of outcomes)
    for (const reason of listed)
      expect(textIn('zh', 'remedies', remedyOf(outcome, reason).code)).toMatch(/\p{Script=Han}/u);
});

test.for<[Outcome, string, string]>([
  // The credentials served other devices of the same push.
  ['failed', 'no_test_user', 'testDevice'],
  ['failed', 'test_rate', 'testDevice'],
  ['failed', 'country_not_supported', 'region'],
  ['failed', 'unknown_in_region', 'region'],
  ['failed', 'needs_review', 'review'],
  ['failed', 'no_high_priority', 'right'],
  ['failed', 'category_invalid', 'category'],
  ['failed', 'category_not_permitted', 'right'],
  ['failed', 'jwt_expired', 'clock'],
  ['failed', 'app_penalised', 'barred'],
  ['failed', 'auth_failed', 'credentials'],
  ['failed', withHint('auth_failed', 'meizuSignature'), 'credentials'],
  ['failed', httpReason(401), 'credentials'],
  ['failed', httpReason(413), 'tooLarge'],
  ['failed', httpReason(404), 'request'],
  ['failed', httpReason(503), 'unavailable'],
  ['failed', reason('noProfileNamed', { connector: 'vendor_b', profile: '_default' }), 'noProfile'],
  [
    'failed',
    reasonAs('alert is too long', 'tooLong', { member: 'alert', connector: 'vendor_b' }),
    'tooLarge',
  ],
  [
    'failed',
    reason('retriesExhausted', { why: withStatus(503, 'ServiceUnavailable') }),
    'unavailable',
  ],
  [
    'failed',
    reason('retriesExhausted', { why: withCause('connect_failed', 'ECONNREFUSED') }),
    'unreachable',
  ],
  ['failed', 'unknown', 'unanswered'],
  ['failed', 'a reason that nobody has seen: auth key secret quota', 'vendorCode'],
  ['expired', reason('expired'), 'expired'],
  ['expired', reason('expiredAfterTry', { why: 'no_permission' }), 'right'],
  ['expired', reason('quietHours'), 'quietHours'],
  ['expired', reason('localTimePassed'), 'localTime'],
  ['capped', reason('appCap', { cap: 10 }), 'appCap'],
  ['capped', reason('deviceCap', { cap: 2 }), 'deviceCap'],
  ['capped', 'day_quota_exceeded', 'gatewayQuota'],
  ['invalid_token', 'Unregistered', 'invalidToken'],
  ['invalid_token', 'DeviceTokenNotForTopic', 'wrongApp'],
  ['invalid_token', 'BadDeviceToken', 'wrongApp'],
  ['dropped', 'cancelled', 'cancelled'],
  ['dropped', 'task_id_invalid', 'dropped'],
])('a recipient that is %s for “%s” has the remedy %s', ([outcome, stored, code]) => {
  expect(remedyOf(outcome, stored).code).toBe(code);
});
