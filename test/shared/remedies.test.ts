import { expect, test } from 'vitest';
import { reasonsByRemedy } from '../../shared/domain/admin/reasons/remedy-codes.ts';
import { reasonTexts } from '../../shared/domain/admin/reasons/texts.ts';
import { remedyCodes, remedyOf } from '../../shared/domain/admin/remedies.ts';
import { type Outcome, outcomes } from '../../shared/domain/outcome.ts';

const listed: string[] = Object.values(reasonsByRemedy).flat();

test('every reason of the catalogue has exactly one remedy', () => {
  expect(listed.toSorted()).toEqual(Object.keys(reasonTexts.en).toSorted());
});

test('every remedy is of some cause, in both languages', () => {
  const used = new Set<string>([...Object.keys(reasonsByRemedy), 'dropped']);
  expect(remedyCodes.toSorted()).toEqual([...used].toSorted());
  for (const outcome of outcomes)
    for (const reason of listed) expect(remedyOf(outcome, reason).zh).toMatch(/\p{Script=Han}/u);
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
  ['failed', 'auth_failed: Meizu refuses the signature: check appSecret.', 'credentials'],
  ['failed', 'http_401', 'credentials'],
  ['failed', 'http_413', 'tooLarge'],
  ['failed', 'http_404', 'request'],
  ['failed', 'http_503', 'unavailable'],
  ['failed', 'there is no vendor_b profile named _default', 'noProfile'],
  ['failed', 'alert must have at most 127 characters for vendor_b', 'tooLarge'],
  ['failed', 'retries exhausted: 503 ServiceUnavailable', 'unavailable'],
  ['failed', 'retries exhausted: connect_failed ECONNREFUSED', 'unreachable'],
  ['failed', 'unknown', 'unanswered'],
  ['failed', 'a reason that nobody has seen: auth key secret quota', 'vendorCode'],
  ['expired', 'expired before it was sent', 'expired'],
  ['expired', 'expired; the last try: no_permission', 'right'],
  ['expired', 'it expires before the quiet hours of the device end', 'quietHours'],
  ['expired', 'its local time had passed when the push was called', 'localTime'],
  ['capped', 'the daily recipient cap of 10 is reached', 'appCap'],
  ['capped', 'the device has had its 2 pushes of the day', 'deviceCap'],
  ['capped', 'day_quota_exceeded', 'gatewayQuota'],
  ['invalid_token', 'Unregistered', 'invalidToken'],
  ['invalid_token', 'DeviceTokenNotForTopic', 'wrongApp'],
  ['invalid_token', 'BadDeviceToken', 'wrongApp'],
  ['dropped', 'cancelled', 'cancelled'],
  ['dropped', 'task_id_invalid', 'dropped'],
])('a recipient that is %s for “%s” has the remedy %s', ([outcome, reason, code]) => {
  expect(remedyOf(outcome, reason).code).toBe(code);
});
