import type { Outcome } from '../outcome.ts';
import { type ReasonCode, readReason } from '../reasons.ts';
import { type Code, codesOf, isCode } from '../texts/catalogue.ts';

/**
 * Reasons grouped by their remedy. A test checks that each reason of the catalogue is listed once
 * and that each remedy exists. A reason that contains another reason, such as `retriesExhausted`,
 * gets the remedy of the inner reason.
 */
export const reasonsByRemedy = {
  invalidToken: [
    ...([
      'ExpiredToken',
      'Unregistered',
      'all_tokens_invalid',
      'apns_token_dead',
      'bad_regid',
    ] as const),
    ...([
      'device_not_found',
      'expired_token',
      'illegal_push_id',
      'illegal_regid',
      'illegal_token',
    ] as const),
    ...([
      'invalid_target',
      'invalid_token',
      'no_valid_target',
      'not_found',
      'reg_id_invalid',
    ] as const),
    ...(['registration_id_invalid', 'token_format_error', 'uninstalled_or_unsubscribed'] as const),
    ...(['unknown_user', 'unregistered', 'fid_unregistered', 'tokenNotHexadecimal'] as const),
    ...(['registrationMalformed', 'installationDeleted', 'token_platform_not_supported'] as const),
    ...(['activityTokenGone', 'ChannelNotRegistered'] as const),
  ],
  wrongApp: [
    ...(['BadDeviceToken', 'DeviceTokenNotForTopic', 'sender_id_mismatch', 'BadTopic'] as const),
    'TopicMismatch',
    ...([
      'MissingTopic',
      'TopicDisallowed',
      'token_of_another_app',
      'bad_package_name',
      'noTopic',
    ] as const),
    ...(['foreignTopic', 'certificateTopic', 'certificateOfOtherApp'] as const),
    ...(['token_of_other_app', 'tokens_of_several_apps'] as const),
  ],
  noProfile: [
    ...(['noProfileNamed', 'notOnThisServer', 'noApnsProfile', 'noApnsProfileOfTeam'] as const),
    ...(['noApnsProfileOfTopic', 'noApnsProfileOfEnvironment', 'severalTeams'] as const),
    ...([
      'noApnsCertificateNamed',
      'noApnsCertificateOfEnvironment',
      'needs_service_account',
    ] as const),
    ...(['noServiceAccount', 'needsTokenAuthentication', 'massPushWithDevelopment'] as const),
    'needsCertificate',
  ],
  hybridPush: ['hybridOff'],
  noAddress: [
    ...(['noDeviceToken', 'noInstallationId', 'MissingDeviceToken', 'address'] as const),
    'noSubscription',
  ],
  subscriptionKey: ['subscription_of_other_key', 'subscriptionKeyUnknown'],
  pushService: ['pushServiceNotListed'],
  credentials: [
    ...(['BadCertificate', 'BadCertificateEnvironment', 'BadEnvironmentKeyIdInToken'] as const),
    ...([
      'BadEnvironmentKeyInToken',
      'Forbidden',
      'InvalidProviderToken',
      'MissingProviderToken',
    ] as const),
    ...(['UnrelatedKeyIdInToken', 'access_denied', 'app_id_invalid', 'app_id_missing'] as const),
    ...([
      'app_key_invalid',
      'app_key_missing',
      'app_not_created',
      'auth_failed',
      'auth_message',
    ] as const),
    ...([
      'auth_token_invalid',
      'auth_token_missing',
      'bad_app_id',
      'bad_app_key',
      'bad_app_secret',
    ] as const),
    ...([
      'certificate_expired',
      'certificate_refused',
      'credentials_refused',
      'illegal_app',
    ] as const),
    ...([
      'invalid_credentials',
      'operation_forbidden',
      'permission_denied',
      'sign_invalid',
    ] as const),
    ...(['sign_missing', 'signature_invalid', 'signature_missing', 'signature_refused'] as const),
    ...([
      'third_party_auth_error',
      'token_auth_failed',
      'unauthenticated',
      'no_access_token',
    ] as const),
    ...(['token_call_refused', 'authentication', 'caExpired', 'certificateEnded'] as const),
    ...([
      'certificateEnds',
      'certificateEnvironment',
      'certificateUnnamed',
      'credentialsUnfit',
    ] as const),
    ...(['certificateUntrusted', 'sender_refused'] as const),
  ],
  clock: [
    ...(['ExpiredProviderToken', 'jwt_expired', 'jwt_too_long', 'timestamp_invalid'] as const),
    ...(['timestamp_missing', 'token_expired', 'certificateNotYet', 'request_expired'] as const),
  ],
  right: [
    ...([
      'api_permission_denied',
      'category_not_permitted',
      'no_high_priority',
      'no_right',
    ] as const),
    ...([
      'no_live_view_right',
      'no_recall_right',
      'no_permission',
      'no_push_type_right',
      'system_messages_off',
    ] as const),
    ...(['backup_url_not_permitted', 'FeatureNotEnabled'] as const),
  ],
  category: [
    ...([
      'category_contradicts_classification',
      'category_invalid',
      'classification_invalid',
    ] as const),
    ...(['template_invalid', 'invalid_channel'] as const),
  ],
  barred: [
    ...([
      'app_blacklisted',
      'app_disabled',
      'app_penalised',
      'ip_blacklisted',
      'push_closed',
    ] as const),
    ...(['request_restricted', 'service_paused'] as const),
  ],
  review: [
    ...(['app_in_review', 'needs_review', 'bad_review_signature', 'image_not_verified'] as const),
    ...(['image_verified_for_other_type'] as const),
  ],
  testDevice: ['no_test_user', 'testLimit', 'test_rate', 'test_token_count', 'looks_like_a_test'],
  region: ['country_not_supported', 'unknown_in_region', 'data_storage_location'],
  privateAddress: ['address_refused'],
  receipts: [
    'bad_receipt_id',
    'callback_param_too_long',
    'callback_url_refused',
    'callback_url_too_long',
  ],
  userSetting: [
    ...([
      'alias_not_subscribed',
      'atomic_service_not_subscribed',
      'illegal_device',
      'inactive',
    ] as const),
    ...(['not_subscribed', 'notifications_off', 'unknown_user_status', 'unsubscribed'] as const),
    ...(['play_voice_not_supported'] as const),
  ],
  message: [
    ...([
      'BadCollapseId',
      'BadChannelId',
      'BadRequestParams',
      'BadRequestPayload',
      'CannotCreateChannelConfig',
      'MissingChannelId',
      'MissingPushType',
      'BadExpirationDate',
      'BadPriority',
      'InvalidPushType',
      'PayloadEmpty',
    ] as const),
    ...(['argument_invalid', 'argument_missing', 'bad_collapse_key', 'bad_message'] as const),
    ...(['bad_parameter', 'bad_parameter_value', 'bad_request', 'device_group_or_topic'] as const),
    ...(['encoding_invalid', 'fieldRefused', 'invalid_argument', 'invalid_message'] as const),
    ...([
      'notification_missing',
      'one_token_only',
      'parameter_missing',
      'pass_through_refused',
    ] as const),
    ...(['picture_invalid', 'sensitive_words', 'title_or_description_refused'] as const),
    ...([
      'ttl_in_the_past',
      'silentNotSupported',
      'classNeeds',
      'memberUnfit',
      'memberRule',
      'missingMember',
    ] as const),
    ...(['contentRefused', 'broadcast_too_frequent', 'message', 'folded'] as const),
  ],
  tooLarge: [
    ...(['PayloadTooLarge', 'body_too_large', 'content_too_long', 'extras_too_long'] as const),
    ...(['message_too_large', 'too_many_extras', 'tooLargeWithValues', 'tooLong'] as const),
  ],
  request: [
    ...([
      'MethodNotAllowed',
      'BadMessageId',
      'BadPath',
      'DuplicateHeaders',
      'httpRefusal',
    ] as const),
    ...([
      'bad_number_of_reg_ids',
      'http_action_not_allowed',
      'method_invalid',
      'method_missing',
    ] as const),
    ...([
      'reg_ids_missing',
      'request_id_missing',
      'request_id_too_long',
      'task_id_invalid',
    ] as const),
    ...(['task_id_missing', 'too_many_registration_tokens', 'version_invalid'] as const),
    ...(['version_missing', 'version_unsupported', 'token_count', 'redirected'] as const),
    ...(['reply_too_large', 'unreadable', 'unreadable_reply', 'token_reply_unreadable'] as const),
    ...(['partial_unreadable', 'protocol'] as const),
  ],
  appCap: ['appCap'],
  deviceCap: ['deviceCap'],
  gatewayQuota: [
    ...(['app_quota_exceeded', 'broadcast_quota_exceeded', 'channel_quota_exceeded'] as const),
    ...(['day_quota_exceeded', 'day_quota_of_pictures_exceeded', 'global_limit'] as const),
    ...(['day_quota_of_saved_messages_exceeded', 'device_day_quota_exceeded'] as const),
    ...(['list_quota_exceeded', 'operation_quota_exceeded', 'system_quota_exceeded'] as const),
    ...(['too_many_today', 'outside_sending_hours'] as const),
  ],
  tooFast: [
    ...(['TooManyProviderTokenUpdates', 'TooManyRequests', 'app_call_frequency'] as const),
    ...(['app_call_limited', 'busy', 'device_rate_exceeded', 'flow_control', 'overload'] as const),
    ...([
      'quota_exceeded',
      'rate_exceeded',
      'read_too_frequent',
      'too_fast',
      'too_frequent',
    ] as const),
    ...(['too_many_topic_tasks', 'smsBusy', 'smsFrequency'] as const),
  ],
  unavailable: [
    ...(['IdleTimeout', 'InternalServerError', 'ServiceUnavailable', 'Shutdown'] as const),
    ...([
      'auth_service_failed',
      'bad_gateway',
      'bad_task',
      'data_not_exist',
      'database_error',
    ] as const),
    ...(['device_unreachable_now', 'failed_this_time', 'gateway_timeout', 'internal'] as const),
    ...(['internal_error', 'push_failed', 'deadline_exceeded', 'remote_error'] as const),
    ...(['request_cancelled', 'saved_without_id', 'saved_without_task', 'send_failed'] as const),
    ...([
      'system_error',
      'task_expired',
      'unavailable',
      'unknown_error',
      'unspecified_error',
    ] as const),
    ...([
      'httpFailure',
      'aborted',
      'closed',
      'connection_lost',
      'goaway',
      'queue_timeout',
    ] as const),
    ...(['refused_stream', 'timeout', 'stopped', 'stopping', 'stream_reset', 'partial'] as const),
    'smsUnavailable',
    ...(['nothing_left_to_read', 'token_call_pending', 'ECONNRESET', 'EPIPE'] as const),
  ],
  unreachable: [
    ...([
      'connect_failed',
      'connect_timeout',
      'ECONNREFUSED',
      'EHOSTUNREACH',
      'ENETUNREACH',
    ] as const),
    ...([
      'ENOTFOUND',
      'EAI_AGAIN',
      'ETIMEDOUT',
      'proxyRefused',
      'tlsFailed',
      'connectionCode',
    ] as const),
    ...(['tls_failed'] as const),
  ],
  ownService: [
    ...(['quota_unavailable', 'token_store_unavailable', 'mailboxUnavailable'] as const),
  ],
  unanswered: ['unknown'],
  expired: ['expired', 'activitySuperseded'],
  quietHours: ['quietHours'],
  localTime: ['localTimePassed'],
  condition: ['conditionFailed'],
  cancelled: ['cancelled'],
  notRecalled: ['notRecallable', 'onDevice', 'routeChanged'],
  smsProvider: [
    ...([
      'smsCredentials',
      'smsClock',
      'smsAccount',
      'smsBalance',
      'smsRight',
      'smsSignature',
    ] as const),
    ...([
      'smsTemplate',
      'smsSender',
      'smsQuota',
      'smsParameters',
      'smsContent',
      'smsNumber',
    ] as const),
    ...([
      'smsBarred',
      'smsRegion',
      'smsUnknown',
      'smsNoTemplate',
      'smsNoVoice',
      'smsUndelivered',
    ] as const),
  ],
  vendorCode: [
    ...(['other', 'unknown_code', 'unknown_reason', 'refused_without_reason'] as const),
    ...(['send_result_false', 'envelope', 'error', 'smsStatus'] as const),
    // The remedy depends on the inner reason.
    ...(['retriesExhausted', 'expiredAfterTry'] as const),
  ],
} as const satisfies Record<string, readonly ReasonCode[]>;

/** What an operator can do about recipients that a push did not reach. */
export interface Remedy {
  code: RemedyCode;
}

type RemedyCode = Code<'remedies'>;

/** Codes of all remedies. */
export const remedyCodes: readonly string[] = codesOf('remedies');

/** Returns the remedy for recipients with an outcome and a stored reason. */
export const remedyOf = (outcome: Outcome, reason: string): Remedy => ({
  code: codeOf(outcome, reason),
});

const remedies = new Map<string, RemedyCode>(
  Object.entries(reasonsByRemedy).flatMap(([remedy, reasons]) =>
    isCode('remedies', remedy) ? reasons.map((reason) => [reason, remedy] as const) : [],
  ),
);

/** Remedies by HTTP status. */
const byStatus: Readonly<Record<string, RemedyCode>> = {
  '401': 'credentials',
  '403': 'credentials',
  '407': 'unreachable',
  '413': 'tooLarge',
  '429': 'tooFast',
};

/** Returns the remedy of a stored reason; `vendorCode` if the reason is not in the catalogue. */
function ofReason(reason: string): RemedyCode {
  const { code, params } = readReason(reason);
  if (params.why !== undefined) return ofReason(params.why);
  const ofStatus = code === 'httpRefusal' ? byStatus[params.status ?? ''] : undefined;
  return ofStatus ?? remedies.get(code) ?? 'vendorCode';
}

function codeOf(outcome: Outcome, reason: string): RemedyCode {
  const found = ofReason(reason);
  switch (outcome) {
    case 'invalid_token':
      return found === 'wrongApp' ? 'wrongApp' : 'invalidToken';
    case 'expired':
      return found === 'vendorCode' ? 'expired' : found;
    case 'capped':
      return found === 'vendorCode' ? 'gatewayQuota' : found;
    case 'dropped':
      return found === 'cancelled' || found === 'notRecalled' ? found : 'dropped';
    default:
      return found;
  }
}
