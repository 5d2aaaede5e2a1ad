/**
 * What Meizu answers and what follows from it (protocol/meizu.md#codes). One code may mean two things: of a whole call,
 * and of a device within a call that went well. Only the latter ever kills a token (protocol/gateways.md#dead-tokens).
 */
import { configError, type ResponseRule, responseTable } from '../../kit/response-rules.ts';

const refusedApp = 'Meizu does not accept the credentials: check appId and appSecret.';

/** Of the whole call. */
export const callRules: readonly ResponseRule[] = [
  { code: '200', reason: 'ok', reaction: 'sent' },
  { code: '500', reason: 'system_error', reaction: 'retry' },
  { code: '1001', reason: 'system_error', reaction: 'retry' },
  { code: '1003', reason: 'busy', reaction: 'throttle' },
  { code: '1005', reason: 'bad_parameter', reaction: 'fail_push' },
  { code: '110004', reason: 'parameter_missing', reaction: 'fail_push' },
  { code: '110053', reason: 'pass_through_refused', reaction: 'fail_push' },
  configError('1006', 'signature_refused', 'Meizu refuses the signature: check appSecret.'),
  configError('110000', 'bad_app_id', refusedApp),
  configError('110001', 'bad_app_key', refusedApp),
  configError('110031', 'bad_package_name', 'Meizu does not know the package name: see its console.'),
  configError('110033', 'bad_app_secret', refusedApp),
  configError('110009', 'app_blacklisted', 'Meizu has put the app on its blacklist: see its console.'),
  // Here it is the rate; of a device it is the user's switch.
  { code: '110010', reason: 'rate_exceeded', reaction: 'throttle' },
  { code: '110019', reason: 'day_quota_exceeded', reaction: 'cap' },
  { code: '110051', reason: 'app_quota_exceeded', reaction: 'cap' },
  // We make no tasks: whatever it means here, another try makes none either.
  { code: '110032', reason: 'bad_task', reaction: 'retry' },
  // Of devices, told of all of them: nobody knows of which, and of one alone it is no proof either.
  { code: '110002', reason: 'not_subscribed', reaction: 'ambiguous', singleTarget: 'fail' },
  { code: '110003', reason: 'illegal_push_id', reaction: 'ambiguous', singleTarget: 'fail' },
  // Followed before it is judged; what leads nowhere is tried again later.
  { code: '300', reason: 'redirected', reaction: 'retry' },
];

/** Of one device, within a call that was taken. */
export const targetRules: readonly ResponseRule[] = [
  { code: '200', reason: 'ok', reaction: 'sent' },
  { code: '201', reason: 'no_permission', reaction: 'fail' },
  { code: '501', reason: 'database_error', reaction: 'retry' },
  { code: '513', reason: 'push_failed', reaction: 'retry' },
  { code: '518', reason: 'rate_exceeded', reaction: 'retry' },
  { code: '519', reason: 'overload', reaction: 'retry' },
  // More than five to a device in a minute: what comes now would be folded as well.
  { code: '520', reason: 'folded', reaction: 'drop' },
  { code: '110002', reason: 'not_subscribed', reaction: 'dead_token' },
  { code: '110003', reason: 'illegal_push_id', reaction: 'dead_token' },
  { code: '110005', reason: 'alias_not_subscribed', reaction: 'fail' },
  { code: '110010', reason: 'notifications_off', reaction: 'fail' },
  // The device's own cap for public messages: other devices and private messages are still served.
  { code: '110011', reason: 'device_day_quota_exceeded', reaction: 'cap' },
];

export const callRuleFor = responseTable(callRules);
export const targetRuleFor = responseTable(targetRules);
