import type { ReasonCode } from './texts.ts';

/** Reasons that are sentences, with their codes. */
export const sentences: Readonly<Record<string, ReasonCode>> = {
  'expired before it was sent': 'expired',
  'its local time had passed when the push was called': 'localTimePassed',
  'it expires before the quiet hours of the device end': 'quietHours',
  'mailbox unavailable': 'mailboxUnavailable',
  'the installation was deleted': 'installationDeleted',
  'the installation has no deviceToken': 'noDeviceToken',
  'the installation has no installationId': 'noInstallationId',
  'the app has no APNs profile': 'noApnsProfile',
  'no APNs profile of that team': 'noApnsProfileOfTeam',
  'no APNs profile owns the topic': 'noApnsProfileOfTopic',
  'several teams own the topic: name one by pgw_team_id': 'severalTeams',
  'dev profile disabled for massive push': 'massPushWithDevelopment',
  "The certificate names no bundle id, as Apple's push certificates do: check that it is one.":
    'certificateUnnamed',
  'The certificate is for another bundle id than the topic of the profile: check the topic.':
    'certificateOfOtherApp',
  'neither the installation nor the push names a topic, and the profile lists several': 'noTopic',
  'hybridPush is off: no device gets pushes by these credentials.': 'hybridOff',
  'the device token is not hexadecimal': 'tokenNotHexadecimal',
  'the registration id is malformed': 'registrationMalformed',
  'the profile has no serviceAccount': 'noServiceAccount',
  'the message is too large with the values of the installation': 'tooLargeWithValues',
};

/**
 * Reasons with values in them, the first pattern that matches; its named groups are the parameters. `why` is a reason
 * itself.
 */
export const patterns: readonly (readonly [RegExp, ReasonCode])[] = [
  [/^retries exhausted: (?<why>.+)$/, 'retriesExhausted'],
  [/^expired; the last try: (?<why>.+)$/, 'expiredAfterTry'],
  [/^the daily recipient cap of (?<cap>\d+) is reached$/, 'appCap'],
  [/^the device has had its (?<cap>\d+) pushes of the day$/, 'deviceCap'],
  [/^test pushes go to at most (?<devices>\d+) devices, (?<times>\d+) times a day$/, 'testLimit'],
  [/^field_refused_(?<field>\d+)$/, 'fieldRefused'],
  [/^http_(?<status>5\d\d)$/, 'httpFailure'],
  [/^http_(?<status>\d+)$/, 'httpRefusal'],
  [/^status_(?<status>\d+)$/, 'smsStatus'],
  [/^unknown code (?<vendorCode>.+)$/, 'unknown_code'],
  [/^(?<cause>PROXY_\w+)$/, 'proxyRefused'],
  [/^(?<cause>(?=[A-Z0-9_]+$)\w*(?:CERT|SELF_SIGNED|ALTNAME|VERIFY|ISSUER)\w*)$/, 'certificateUntrusted'],
  [/^(?<cause>(?=[A-Z0-9_]+$)\w*(?:SSL|TLS|EPROTO)\w*)$/, 'tlsFailed'],
  [/^(?<cause>[A-Z][A-Z0-9_]{2,59})$/, 'connectionCode'],
  [/^there is no (?<connector>\w+) profile named (?<profile>.+)$/, 'noProfileNamed'],
  [/^(?<connector>\w+) is not available on this server$/, 'notOnThisServer'],
  [/^no APNs profile serves the (?<environment>\w+) environment$/, 'noApnsProfileOfEnvironment'],
  [/^no APNs certificate named (?<profile>.+)$/, 'noApnsCertificateNamed'],
  [/^no APNs certificate serves the (?<environment>\w+) environment$/, 'noApnsCertificateOfEnvironment'],
  [/^the topic (?<topic>\S+) is not among those of the profile$/, 'foreignTopic'],
  [/^the push type (?<type>\w+) needs token authentication$/, 'needsTokenAuthentication'],
  [/^the certificate does not serve the topic (?<topic>\S+)$/, 'certificateTopic'],
  [/^(?<connector>\w+) does not support silent messages$/, 'silentNotSupported'],
  [/^(?<member>\S+) must have at most \d+ characters for (?<connector>\w+)$/, 'tooLong'],
  [/^(?<member>\S+) of (?<connector>vendor_\w+|fcm|apns|channel) must be .+$/, 'memberRule'],
  [/^(?<connector>vendor_\w+) needs a (?<member>\w+)$/, 'missingMember'],
  [/^(?<member>[^\s:]+)(?:: there is no such member| must (?:be|have|not) ).*$/, 'memberUnfit'],
  [/^A certificate in ca expired on (?<day>[\d-]+): replace it\.$/, 'caExpired'],
  [/^The certificate expired on (?<day>[\d-]+): upload a new one\.$/, 'certificateEnded'],
  [/^The certificate expires on (?<day>[\d-]+): upload a new one before\.$/, 'certificateEnds'],
  [
    /^The certificate is not valid before (?<day>[\d-]+): check the clock of this machine\.$/,
    'certificateNotYet',
  ],
  [
    /^The certificate is for the APNs environment (?<environment>\w+) only: set "environment" to it\.$/,
    'certificateEnvironment',
  ],
  [/^A certificate ends on (?<day>[\d-]+)\.$/, 'certificateEnds'],
  [/^.+: put the profile again\.$/, 'credentialsUnfit'],
  [/\b(must be|must have|must name|needs|of this style|is a name that)\b/, 'contentRefused'],
];
