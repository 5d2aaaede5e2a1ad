/**
 * What OPPO answers and what follows from it (protocol/oppo.md#codes, protocol/oppo.md#broadcast for 10001 and 10004): one row per
 * code, the same for a whole answer and for one device within it.
 */
import { badMessage, mend, type Row, tableOf, tooFast } from '../../kit/response-rules.ts';

const refusedKey = 'OPPO refuses the credentials: check appKey and masterSecret.';
const refusedTime = 'OPPO refuses the time of the call: check the clock of this machine.';
const refusedToken = 'OPPO refuses a fresh access token: check appKey and masterSecret.';
const forbidden = 'OPPO does not let this app send: see its console.';

export const rows: readonly Row[] = [
  { code: '0', reason: 'ok', reaction: 'sent' },
  { code: '-1', reason: 'unavailable', reaction: 'retry' },
  // Only OPPO's own client says it, of an answer that is no JSON.
  { code: '-3', reason: 'unreadable', reaction: 'retry' },
  tooFast('-2', 'flow_control'),
  tooFast('13', 'app_call_limited'),
  tooFast('55', 'app_call_frequency'),
  { code: '11', reason: 'auth_token_invalid', reaction: 'renew_token', sentence: refusedToken },
  { code: '29', reason: 'auth_token_missing', reaction: 'renew_token', sentence: refusedToken },
  mend('14', 'app_key_invalid', refusedKey),
  mend('15', 'app_key_missing', refusedKey),
  mend('16', 'signature_invalid', refusedKey),
  mend('17', 'signature_missing', refusedKey),
  mend('18', 'timestamp_missing', refusedTime),
  mend('19', 'timestamp_invalid', refusedTime),
  mend('26', 'ip_blacklisted', 'OPPO has this machine’s address on its blacklist: see its console.'),
  mend('27', 'access_denied', forbidden),
  mend('28', 'app_disabled', forbidden),
  mend('30', 'api_permission_denied', forbidden),
  badMessage('12', 'http_action_not_allowed'),
  badMessage('20', 'method_invalid'),
  badMessage('21', 'method_missing'),
  badMessage('22', 'version_missing'),
  badMessage('23', 'version_invalid'),
  badMessage('24', 'version_unsupported'),
  badMessage('25', 'encoding_invalid'),
  badMessage('40', 'argument_missing'),
  // Of the message or of a registration id: alone it is no proof against a device.
  { code: '41', reason: 'argument_invalid', reaction: 'ambiguous', alone: 'fail' },
  { code: '10000', reason: 'registration_id_invalid', reaction: 'ambiguous', alone: 'dead_token' },
  { code: '10001', reason: 'unsubscribed', reaction: 'ambiguous', alone: 'dead_token' },
  // Named twice in a request: it was sent to.
  { code: '10004', reason: 'repeated', reaction: 'sent' },
  // With our own id of the message: it was sent before.
  { code: '32', reason: 'duplicate', reaction: 'sent' },
  // A saved message that is gone: it is saved again at the next attempt.
  { code: '31', reason: 'data_not_exist', reaction: 'retry' },
  { code: '33', reason: 'day_quota_exceeded', reaction: 'cap' },
  { code: '42', reason: 'day_quota_of_saved_messages_exceeded', reaction: 'cap' },
  badMessage('34', 'day_quota_of_pictures_exceeded'),
  badMessage('51', 'picture_invalid'),
  badMessage('59', 'backup_url_not_permitted'),
  mend(
    '54',
    'template_invalid',
    'OPPO wants a template for this category, or another one: see private_msg_template_id and its console.',
  ),
  mend('67', 'category_not_permitted', 'OPPO does not accept category or notify_level: see its console.'),
  mend('69', 'global_limit', 'OPPO limits this app altogether: ask its support.'),
];

export const rowOf = tableOf(rows);

/** 41 of so many devices, one after the other, and of none that it was sent: it is the message. */
const enough = 3;

/** Tells a message that OPPO takes of nobody from a device that spoils its request (protocol/gateways.md#ambiguous-answers: halving has an end). */
export class MessageDoubt {
  #isTaken = false;
  #refusals = 0;

  /** The row as it is to be judged, of a request to so many devices. */
  weigh(row: Row, devices: number): Row {
    if (row.reaction === 'sent') this.#isTaken = true;
    if (row.code !== '41' || devices > 1 || this.#isTaken) return row;
    this.#refusals += 1;
    return this.#refusals < enough ? row : { ...row, reaction: 'fail_push' };
  }
}
