import { availableParallelism } from 'node:os';
import { parse } from 'pg-connection-string';
import { z } from 'zod';
import { isBaseUrl } from '../domain/addresses.ts';
import { rightsMap } from '../domain/admin/oidc-rights.ts';
import { issueText } from '../domain/errors/issue-text.ts';
import { invalidPushHost } from '../domain/installations/push-services.ts';
import { parseSmsUrl } from '../domain/messages/sms-provider.ts';
import { PrivateHosts } from './private-hosts.ts';

/** `sslmode` values of libpq, and one that `pg` adds. `connectionUrl` documents their meaning. */
const sslModes = [
  'disable',
  'allow',
  'prefer',
  'require',
  'verify-ca',
  'verify-full',
  'no-verify',
] as const;

/** Modes that have another name in `pg`. */
const pgModes: Readonly<Record<string, string>> = {
  allow: 'disable',
  prefer: 'require',
  'no-verify': 'require',
};

/**
 * Converts a database URL for `pg`, so that `sslmode` has the meaning of libpq (PostgreSQL
 * documentation, "SSL Support"):
 *
 * - `require` encrypts, and verifies the certificate only with `sslrootcert`.
 * - `verify-ca` verifies the certificate, and `verify-full` also the host name.
 * - Without `sslmode`, the connection is not encrypted.
 * - `sslrootcert=system` trusts the authorities that Node.js trusts.
 *
 * `pg` itself treats `prefer`, `require` and `verify-ca` like `verify-full`, and fails for `allow`.
 * It does not fall back from one mode to another, so `prefer` becomes `require`, and `allow`
 * becomes `disable`.
 */
export function connectionUrl(url: string): string {
  const queryStart = url.indexOf('?');
  if (queryStart < 0) return url;
  const params = new URLSearchParams(url.slice(queryStart + 1));
  const mode = params.get('sslmode');
  const isSystem = params.get('sslrootcert') === 'system';
  if (mode === null && !isSystem) return url;
  // As in libpq. With the system's authorities, a certificate proves nothing if the host name is
  // not checked.
  params.set('sslmode', isSystem ? 'verify-full' : (pgModes[mode ?? ''] ?? mode ?? ''));
  if (isSystem) params.delete('sslrootcert');
  params.set('uselibpqcompat', 'true');
  return `${url.slice(0, queryStart)}?${params}`;
}

/**
 * Returns the error of a database URL, without user and password. Returns undefined if `pg` can use
 * the URL.
 */
function databaseUrlError(url: string): string | undefined {
  const queryStart = url.indexOf('?');
  const params = new URLSearchParams(queryStart < 0 ? '' : url.slice(queryStart + 1));
  const mode = params.get('sslmode');
  if (mode !== null && !sslModes.some((known) => known === mode))
    return `expected sslmode to be one of ${sslModes.slice(0, -1).join(', ')}`;
  if (mode === 'verify-ca' && !params.has('sslrootcert'))
    return 'expected sslrootcert=<file> beside sslmode=verify-ca (sslmode=verify-full goes without)';
  try {
    parse(connectionUrl(url));
    return undefined;
  } catch (error) {
    if (error instanceof URIError)
      return 'expected UTF-8 in the escapes of user, password and name (`%25` is `%`)';
    return `cannot be read: ${error instanceof Error ? error.message : ''}`;
  }
}

/**
 * Variables of the environment with their types, descriptions and defaults
 * (protocol/operation.md#environment). `shared/config/config.ts` reads them, and
 * docs/reference/configuration.md is generated from them.
 */
const databaseUrl = z
  .string()
  .refine(
    (text) => /^postgres(ql)?:\/\//.test(text),
    'expected a URL that begins with postgresql://',
  )
  .superRefine((text, context) => {
    const message = databaseUrlError(text);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });

/** Accepts only digits. `Number` would also accept 0x50, 1e3, and a blank as 0. */
const wholeNumber = (expected: string) =>
  z
    .string()
    .regex(/^\d{1,9}$/, expected)
    .transform(Number);

const port = wholeNumber('expected a port number').pipe(
  z.number().max(65535, 'expected a port from 0 to 65535'),
);

const address = z.string().min(1, 'expected an address');
const token = z.string().min(16, 'expected at least 16 characters');

export const secretList = z.string().transform((text, context) => {
  const keys = text.split(',').map((part) => Buffer.from(part.trim(), 'base64'));
  if (keys.some((key) => key.length !== 32))
    context.addIssue({
      code: 'custom',
      message:
        'expected 32 bytes in base64 (`openssl rand -base64 32`), or several, separated by commas',
    });
  return keys;
});

const privateHosts = z.string().superRefine((text, context) => {
  try {
    new PrivateHosts(text);
  } catch (error) {
    context.addIssue({
      code: 'custom',
      message: error instanceof Error ? error.message : 'is wrong',
    });
  }
});

const pushHosts = z.string().superRefine((text, context) => {
  const invalid = invalidPushHost(text);
  if (invalid !== undefined)
    context.addIssue({
      code: 'custom',
      message: `expected host or host:port, separated by commas; found ${invalid}`,
    });
});

const httpUrl = z.url({
  protocol: /^https?$/,
  error: 'expected an http:// or https:// URL',
  abort: true,
});

/** Parses `SMS_URL`. The error never quotes the URL, which contains a secret. */
const smsUrl = z.string().transform((text, context) => {
  const result = parseSmsUrl(text);
  if (result.ok) return result.value;
  context.addIssue({ code: 'custom', message: result.error });
  return z.NEVER;
});

const publicUrl = httpUrl
  .refine(isBaseUrl, 'expected an address without user, query and fragment')
  .transform((text) => text.replace(/\/+$/, ''));

/** Parses `OIDC_ROLES`. Its errors name the member. */
const oidcRoles = z.string().transform((text, context) => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    context.addIssue({ code: 'custom', message: 'expected JSON' });
    return z.NEVER;
  }
  const parsed = rightsMap.safeParse(value, { error: issueText });
  if (parsed.success) return parsed.data;
  for (const { path, message } of parsed.error.issues)
    context.addIssue({ code: 'custom', message: [...path.map(String), message].join(': ') });
  return z.NEVER;
});

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
const logLevel = z
  .enum(logLevels, `expected one of ${logLevels.join(', ')}`)
  .default('info')
  .describe('Minimum level of logged lines.');

/** Description of a variable. `byDefault` describes a default that is not a fixed value. */
const meaning = (description: string, byDefault: string) => ({ description, byDefault });

const connections = (min: number, usual: number, use: string) =>
  wholeNumber('expected a whole number')
    .pipe(z.number().min(min, `expected at least ${min}`).max(1000, 'expected at most 1000'))
    .default(usual)
    .describe(`Maximum number of database connections for ${use}.`);

/** Variables of all programs with a database. */
const poolerVariables = {
  DATABASE_DIRECT_URL: databaseUrl
    .optional()
    .meta(
      meaning(
        'PostgreSQL without a pooler. Notifications, migrations and imports use it, because they need a session.',
        '`DATABASE_URL`',
      ),
    ),
  DATABASE_POOLER: z
    .enum(['none', 'transaction'], 'expected none or transaction')
    .default('none')
    .describe(
      '`transaction` if `DATABASE_URL` leads to PgBouncer with `pool_mode = transaction`. The service then uses no named statements and no session settings.',
    ),
};

/** Variables of an api or dispatcher process. */
export const processVariables = z.object({
  PORT: port
    .default(8080)
    .describe(
      'HTTP port of the api, for the public API, the device channel and the metrics of the api.',
    ),
  HOST: address.default('0.0.0.0').describe('Address that the api listens on.'),
  PUBLIC_URL: publicUrl
    .optional()
    .meta(meaning('Base URL of all links that the service creates.', '`http://127.0.0.1:$PORT`')),
  DATABASE_URL: databaseUrl.describe(
    'PostgreSQL, 15 or newer. `sslmode` has the same meaning as in libpq. Without `sslmode` the connection is not encrypted.',
  ),
  DATABASE_READ_URL: databaseUrl
    .optional()
    .meta(meaning('Hot standby for the scans of pushes and for queries.', '`DATABASE_URL`')),
  ...poolerVariables,
  DATABASE_CONNECTIONS_CALLS: connections(2, 10, 'saves, logins and reads by id'),
  DATABASE_CONNECTIONS_ADMISSION: connections(
    2,
    5,
    'accepting pushes, for apps and profiles, and for `/readyz`',
  ),
  DATABASE_CONNECTIONS_SAVES: connections(1, 2, 'grouped saves of installations'),
  DATABASE_CONNECTIONS_QUERIES: connections(2, 8, 'conditions, lists and scans'),
  DATABASE_CONNECTIONS_DISPATCHER: connections(4, 10, 'the results of a dispatcher'),
  DATABASE_CONNECTIONS_SMALL: connections(2, 4, 'statements for several pushes'),
  DATABASE_CONNECTIONS_SCANS: connections(2, 18, 'the planning of a dispatcher'),
  DATABASE_CONNECTIONS_THREAD: connections(2, 4, 'each thread of a dispatcher'),
  CARILLON_ADMIN_TOKEN: token.describe('Bearer token of the admin API, at least 16 characters.'),
  CARILLON_SECRET: secretList.describe(
    'Keys that encrypt stored keys and credentials: 32 bytes in base64 each, separated by commas. The first key encrypts, and all keys decrypt.',
  ),
  DISPATCHER_THREADS: wholeNumber('expected a whole number')
    .pipe(z.number().min(1, 'expected at least 1').max(256, 'expected at most 256'))
    .default(availableParallelism())
    .meta(meaning('Worker threads of a dispatcher, 1 to 256.', 'the number of cores')),
  METRICS_PORT: port.default(9464).describe('Port of the metrics and health of a dispatcher.'),
  METRICS_HOST: address
    .optional()
    .meta(meaning('Address that the metrics of a dispatcher listen on.', '`HOST`')),
  METRICS_TOKEN: token
    .optional()
    .describe(
      'Bearer token for `/metrics` of api and dispatcher. Without it, only callers on the same machine may read the metrics.',
    ),
  TRUSTED_PROXIES: wholeNumber('expected how many proxies are in front, a whole number')
    .pipe(z.number().max(10, 'expected at most 10'))
    .default(0)
    .describe(
      'Number of proxies in front of the api that add to `X-Forwarded-For`, at most 10. If the number is too low, all clients share the address of a proxy and its limits.',
    ),
  OIDC_ISSUER: httpUrl
    .refine(isBaseUrl, 'expected an address without user, query and fragment')
    .optional()
    .meta(
      meaning(
        'Issuer of OpenID Connect that people log in to the console with (api). Needs the three variables below.',
        'login by token only',
      ),
    ),
  OIDC_CLIENT_ID: z
    .string()
    .min(1)
    .optional()
    .describe('Id of the client that the issuer has for Carillon.'),
  OIDC_CLIENT_SECRET: z.string().min(1).optional().describe('Secret of this client.'),
  OIDC_ROLES: oidcRoles
    .optional()
    .describe(
      'Rights of people, as JSON: a value of the claim `groups` or `roles` → `{"role","apps"?}`. Nobody without a listed value gets in.',
    ),
  SMTP_URL: z
    .url({ protocol: /^smtps?$/, error: 'expected an smtp:// or smtps:// URL' })
    .optional()
    .meta(meaning('SMTP server that sends mail (dispatcher).', 'mail stays in the outbox')),
  OPERATOR_MAIL: z
    .email('expected a mail address')
    .optional()
    .meta(
      meaning(
        'Mail address for warnings about credentials that expire within 30 days (dispatcher).',
        'no mail',
      ),
    ),
  SMS_URL: smsUrl
    .optional()
    .meta(
      meaning(
        'SMS provider that sends SMS messages (dispatcher): `aliyun://<key id>:<secret>@<region>`, `tencent://<secret id>:<secret key>@<region>?appId=<sdk app id>`, `twilio://<account sid>:<auth token>@?from=<number or service>`, or the http(s) URL of a webhook. `?endpoint=` replaces the base URL of the provider. The api needs it too, for the receipts of Twilio.',
        'messages stay in the outbox',
      ),
    ),
  SMS_WEBHOOK_URL: httpUrl
    .optional()
    .meta(
      meaning(
        'URL of a webhook that sends SMS and voice messages (dispatcher), the older name of `SMS_URL`. If both are set, they must be equal.',
        'messages stay in the outbox',
      ),
    ),
  CARILLON_PRIVATE_HOSTS: privateHosts
    .default('')
    .meta(
      meaning(
        'Private networks (`10.1.0.0/16`), addresses and host names that URLs of the admin API may lead to, separated by commas. The URLs are `endpoint`, `authEndpoint`, `proxy`, `token_uri`, `jwksUrl` and `functionsUrl`. Public addresses are always allowed. Link-local addresses and addresses of cloud metadata services are never allowed.',
        'none; `npm start`: loopback',
      ),
    ),
  WEBPUSH_HOSTS: pushHosts
    .default('')
    .meta(
      meaning(
        'Push services that Web Push subscriptions may belong to, in addition to those of the browsers: `host` or `host:port`, separated by commas. UnifiedPush servers are examples.',
        'none',
      ),
    ),
  CARILLON_FUNCTIONS_URL: publicUrl
    .optional()
    .describe('Function host of apps without `functionsUrl`; `npm start` sets it.'),
  CARILLON_FUNCTIONS_TOKEN: token
    .optional()
    .describe('Token for calls to `CARILLON_FUNCTIONS_URL`; `npm start` sets it.'),
  CARILLON_TRY_URL: httpUrl
    .optional()
    .describe(
      'Page that tries Web Push in a browser, for a link in the console; `npm start` sets it.',
    ),
  LOG_LEVEL: logLevel,
  NODE_ENV: z
    .string()
    .default('production')
    .describe('`test` lets the admin API return the characters of a captcha.'),
});

/** Variables of the embedded function host. `npm start` sets them. */
export const functionHostVariables = z.object({
  CARILLON_FUNCTIONS_DIR: z.string().describe('Folder of cloud functions.'),
  CARILLON_FUNCTIONS_PORT: port.describe('Port that the function host listens on.'),
  CARILLON_FUNCTIONS_TOKEN: token.describe('Token that calls of the api contain.'),
  CARILLON_API_URL: publicUrl.describe('Base URL of the api, for functions that call it.'),
  LOG_LEVEL: logLevel,
});

/** Variables of `npm start` and the command line. All are optional. */
export const localVariables = z.object({
  PORT: port
    .optional()
    .meta(meaning('HTTP port of the api.', '8080, or a free port if 8080 is in use')),
  HOST: address.default('127.0.0.1').describe('Address that all servers listen on.'),
  PUBLIC_URL: publicUrl
    .optional()
    .meta(
      meaning(
        'Base URL of all links. The command line calls the api at this URL.',
        '`http://127.0.0.1:$PORT`',
      ),
    ),
  METRICS_PORT: port
    .optional()
    .meta(
      meaning('Port of the metrics of the dispatcher.', '9464, or a free port if 9464 is in use'),
    ),
  METRICS_HOST: address
    .optional()
    .meta(meaning('Address that the metrics of the dispatcher listen on.', '`HOST`')),
  DATABASE_URL: databaseUrl
    .optional()
    .meta(meaning('PostgreSQL, 15 or newer.', 'an embedded PostgreSQL in `CARILLON_DATA_DIR`')),
  DATABASE_DIRECT_URL: poolerVariables.DATABASE_DIRECT_URL,
  CARILLON_DATA_DIR: z
    .string()
    .default('.carillon')
    .describe('Folder of the embedded database and keys.'),
  CARILLON_FUNCTIONS_DIR: z
    .string()
    .optional()
    .describe('Folder of cloud functions that `npm start` runs, for apps without `functionsUrl`.'),
  CARILLON_ADMIN_TOKEN: z
    .string()
    .optional()
    .meta(
      meaning(
        'Bearer token of the admin API.',
        'created at the first start and stored in `CARILLON_DATA_DIR`',
      ),
    ),
  CARILLON_SECRET: z
    .string()
    .optional()
    .meta(
      meaning(
        'Keys that encrypt stored values.',
        'created at the first start and stored in `CARILLON_DATA_DIR`',
      ),
    ),
});
