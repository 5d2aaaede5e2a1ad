/**
 * Response tables of Meizu (protocol/meizu.md#codes). A code may have one meaning for a whole call
 * and another for a device of a successful call. Only the meaning for a device can mark a token as
 * dead (protocol/gateways.md#dead-tokens).
 */
import { configError, type ResponseRule, responseTable } from '../../kit/response-rules.ts';

/** Rules for a whole call. */
export const callRules: readonly ResponseRule[] = [
  { code: '200', reason: 'ok', reaction: 'sent' },
  { code: '500', reason: 'system_error', reaction: 'retry' },
  { code: '1001', reason: 'system_error', reaction: 'retry' },
  { code: '1003', reason: 'busy', reaction: 'throttle' },
  { code: '1005', reason: 'bad_parameter', reaction: 'fail_push' },
  { code: '110004', reason: 'parameter_missing', reaction: 'fail_push' },
  { code: '110053', reason: 'pass_through_refused', reaction: 'fail_push' },
  configError('1006', 'signature_refused', 'meizuSignature'),
  configError('110000', 'bad_app_id', 'meizuCredentials'),
  configError('110001', 'bad_app_key', 'meizuCredentials'),
  configError('110031', 'bad_package_name', 'meizuPackage'),
  configError('110033', 'bad_app_secret', 'meizuCredentials'),
  configError('110009', 'app_blacklisted', 'meizuBlacklist'),
  // For a call, this code means that the rate is exceeded. For a device, it means that
  // notifications are off.
  { code: '110010', reason: 'rate_exceeded', reaction: 'throttle' },
  { code: '110019', reason: 'day_quota_exceeded', reaction: 'cap' },
  { code: '110051', reason: 'app_quota_exceeded', reaction: 'cap' },
  // Concerns tasks, which this connector does not create. A retry does no harm.
  { code: '110032', reason: 'bad_task', reaction: 'retry' },
  // The response does not say which device is meant, and is not reliable for a single device
  // either.
  { code: '110002', reason: 'not_subscribed', reaction: 'ambiguous', singleTarget: 'fail' },
  { code: '110003', reason: 'illegal_push_id', reaction: 'ambiguous', singleTarget: 'fail' },
  // The client follows valid redirects. After an invalid redirect, the call is retried later.
  { code: '300', reason: 'redirected', reaction: 'retry' },
];

/** Rules for one device of a successful call. */
export const targetRules: readonly ResponseRule[] = [
  { code: '200', reason: 'ok', reaction: 'sent' },
  { code: '201', reason: 'no_permission', reaction: 'fail', isOfDevice: true },
  { code: '501', reason: 'database_error', reaction: 'retry' },
  { code: '513', reason: 'push_failed', reaction: 'retry' },
  { code: '518', reason: 'rate_exceeded', reaction: 'retry' },
  { code: '519', reason: 'overload', reaction: 'retry' },
  // The device got more than five messages in a minute. A retry would be folded too.
  { code: '520', reason: 'folded', reaction: 'drop' },
  { code: '110002', reason: 'not_subscribed', reaction: 'dead_token' },
  { code: '110003', reason: 'illegal_push_id', reaction: 'dead_token' },
  { code: '110005', reason: 'alias_not_subscribed', reaction: 'fail', isOfDevice: true },
  { code: '110010', reason: 'notifications_off', reaction: 'fail', isOfDevice: true },
  // Daily quota of the device for public messages. Other devices and private messages are not
  // affected.
  { code: '110011', reason: 'device_day_quota_exceeded', reaction: 'cap' },
];

export const callRuleFor = responseTable(callRules);
export const targetRuleFor = responseTable(targetRules);
