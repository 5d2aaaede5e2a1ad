import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { RightsMap } from '../domain/admin/oidc-rights.ts';
import { issueText } from '../domain/errors/issue-text.ts';
import type { SmsProviderUrl } from '../domain/messages/sms-provider.ts';
import {
  functionHostVariables,
  localVariables,
  processVariables,
  secretList,
} from './environment.ts';

const webhookOf = (url: string | undefined): SmsProviderUrl | undefined =>
  url === undefined ? undefined : { provider: 'webhook', url };

const oidcVariables = [
  'OIDC_ISSUER',
  'OIDC_CLIENT_ID',
  'OIDC_CLIENT_SECRET',
  'OIDC_ROLES',
] as const;

/** Adds an issue for each missing variable if only some of the four are set. */
function requireWholeOidc(
  env: z.output<typeof processVariables>,
  context: z.core.$RefinementCtx,
): void {
  const unset = oidcVariables.filter((name) => env[name] === undefined);
  if (unset.length === oidcVariables.length) return;
  for (const name of unset)
    context.addIssue({
      code: 'custom',
      path: [name],
      message: `expected with ${oidcVariables.filter((one) => one !== name).join(', ')}`,
    });
}

/** Settings of the login by OpenID Connect. */
export interface OidcSettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
  roles: RightsMap;
}

function oidcOf(env: z.output<typeof processVariables>): OidcSettings | undefined {
  const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_ROLES } = env;
  if (!OIDC_ISSUER || !OIDC_CLIENT_ID || !OIDC_CLIENT_SECRET || !OIDC_ROLES) return undefined;
  return {
    issuer: OIDC_ISSUER,
    clientId: OIDC_CLIENT_ID,
    clientSecret: OIDC_CLIENT_SECRET,
    roles: OIDC_ROLES,
  };
}

/** Adds an issue if `SMS_URL` and `SMS_WEBHOOK_URL` name different providers. */
function requireOneSmsUrl(
  { SMS_URL: sms, SMS_WEBHOOK_URL: webhook }: z.output<typeof processVariables>,
  context: z.core.$RefinementCtx,
): void {
  if (sms === undefined || webhook === undefined) return;
  if (sms.provider === 'webhook' && sms.url === webhook) return;
  context.addIssue({
    code: 'custom',
    path: ['SMS_URL'],
    message: 'expected the same URL as SMS_WEBHOOK_URL; remove SMS_WEBHOOK_URL',
  });
}

/**
 * The environment as one checked value (protocol/operation.md#environment). No other file reads the
 * environment.
 */
const schema = processVariables
  .superRefine(requireOneSmsUrl)
  .superRefine(requireWholeOidc)
  .transform((env) => ({
    port: env.PORT,
    host: env.HOST,
    publicUrl: env.PUBLIC_URL ?? `http://127.0.0.1:${env.PORT}`,
    databaseUrl: env.DATABASE_URL,
    databaseReadUrl: env.DATABASE_READ_URL ?? env.DATABASE_URL,
    /** PostgreSQL without a pooler, for statements that need a session. */
    databaseDirectUrl: env.DATABASE_DIRECT_URL ?? env.DATABASE_URL,
    pooler: env.DATABASE_POOLER,
    /** Maximum sizes of the connection pools. */
    connections: {
      calls: env.DATABASE_CONNECTIONS_CALLS,
      admission: env.DATABASE_CONNECTIONS_ADMISSION,
      saves: env.DATABASE_CONNECTIONS_SAVES,
      queries: env.DATABASE_CONNECTIONS_QUERIES,
      dispatcher: env.DATABASE_CONNECTIONS_DISPATCHER,
      small: env.DATABASE_CONNECTIONS_SMALL,
      scans: env.DATABASE_CONNECTIONS_SCANS,
      thread: env.DATABASE_CONNECTIONS_THREAD,
    },
    adminToken: env.CARILLON_ADMIN_TOKEN,
    secrets: env.CARILLON_SECRET,
    dispatcherThreads: env.DISPATCHER_THREADS,
    metricsPort: env.METRICS_PORT,
    /**
     * Address for the metrics of the dispatcher. `metricsToken` is the bearer token for `/metrics` of
     * all processes.
     */
    metricsHost: env.METRICS_HOST ?? env.HOST,
    metricsToken: env.METRICS_TOKEN,
    trustedProxies: env.TRUSTED_PROXIES,
    smtpUrl: env.SMTP_URL,
    /** Address for mails to the operator. */
    operatorMail: env.OPERATOR_MAIL,
    /** Provider of SMS. */
    sms: env.SMS_URL ?? webhookOf(env.SMS_WEBHOOK_URL),
    /** Login to the console by OpenID Connect. */
    oidc: oidcOf(env),
    /** Private addresses that URLs of the admin API may use. */
    privateHosts: env.CARILLON_PRIVATE_HOSTS,
    /** Push services of Web Push subscriptions, in addition to the built-in list. */
    pushHosts: env.WEBPUSH_HOSTS,
    /** Function host for apps without `functionsUrl`, and the token for calls to it. */
    functionsUrl: env.CARILLON_FUNCTIONS_URL,
    functionsToken: env.CARILLON_FUNCTIONS_TOKEN,
    /** Page of the local service that tries Web Push in a browser. */
    tryUrl: env.CARILLON_TRY_URL,
    logLevel: env.LOG_LEVEL,
    isTest: env.NODE_ENV === 'test',
  }));

export type Config = z.infer<typeof schema>;

/** The environment is invalid. Has one line per variable, without its value. */
export class ConfigError extends Error {
  readonly messages: string[];

  constructor(messages: string[]) {
    super(
      `The environment is not fit to start:\n${messages.map((line) => `  ${line}`).join('\n')}`,
    );
    this.name = 'ConfigError';
    this.messages = messages;
  }
}

const missing: Record<string, string> = {
  DATABASE_URL:
    'is missing; expected a PostgreSQL URL such as postgresql://user@host/carillon (`npm start` brings a database of its own)',
  CARILLON_ADMIN_TOKEN:
    'is missing; expected the bearer token of the admin API, at least 16 characters',
  CARILLON_SECRET: 'is missing; expected 32 bytes in base64 (`openssl rand -base64 32`)',
};

/** Variables by name, as in `process.env`. */
export type Environment = Record<string, string | undefined>;

/** Returns a copy of the environment for child processes. */
export const currentEnvironment = (): Environment => ({ ...process.env });

/**
 * Reads and checks the environment. An empty variable counts as absent. Throws a `ConfigError` that
 * contains each invalid variable, its error and the expected form. Never quotes values, because
 * they may be secrets.
 */
export function readConfig(env: Environment = process.env): Config {
  return check(schema, env);
}

function check<T extends z.ZodType>(shape: T, env: Environment): z.infer<T> {
  const present = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const result = shape.safeParse(present, { error: issueText });
  if (result.success) return result.data;
  throw new ConfigError(
    result.error.issues.map((issue) => {
      const name = String(issue.path[0]);
      const text =
        present[name] === undefined
          ? (missing[name] ??
            (issue.code === 'custom' ? `is missing: ${issue.message}` : 'is missing'))
          : `is wrong: ${issue.message}`;
      return `${name} ${text}`;
    }),
  );
}

/** Parses the keys in a `CARILLON_SECRET`. Throws a `ConfigError` if they are invalid. */
export function readSecretKeys(text: string): Buffer[] {
  return check(z.object({ CARILLON_SECRET: secretList }), { CARILLON_SECRET: text })
    .CARILLON_SECRET;
}

const functionsSchema = functionHostVariables.transform((env) => ({
  dir: env.CARILLON_FUNCTIONS_DIR,
  port: env.CARILLON_FUNCTIONS_PORT,
  token: env.CARILLON_FUNCTIONS_TOKEN,
  apiUrl: env.CARILLON_API_URL,
  logLevel: env.LOG_LEVEL,
}));

/**
 * Reads the configuration of the embedded function host. Throws a `ConfigError` if it is invalid.
 */
export function readFunctionsConfig(
  env: Environment = process.env,
): z.infer<typeof functionsSchema> {
  return check(functionsSchema, env);
}

/** Returns the URL that this machine can use to reach a server listening on `host`. */
export function urlAt(host: string | undefined, port: number): string {
  const isAnywhere = host === undefined || ['0.0.0.0', '::'].includes(host);
  const name = isAnywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

const localSchema = localVariables.transform((env) => ({
  /** Requested ports. If absent, any free port is used. */
  port: env.PORT,
  metricsPort: env.METRICS_PORT,
  host: env.HOST,
  /** PUBLIC_URL as set. `publicUrl` also has a default, which is used to find the service. */
  configuredPublicUrl: env.PUBLIC_URL,
  publicUrl:
    env.PUBLIC_URL ?? (env.PORT === undefined ? undefined : `http://127.0.0.1:${env.PORT}`),
  metricsHost: env.METRICS_HOST ?? env.HOST,
  metricsUrl:
    env.METRICS_PORT === undefined ? undefined : urlAt(env.METRICS_HOST, env.METRICS_PORT),
  databaseUrl: env.DATABASE_URL,
  databaseDirectUrl: env.DATABASE_DIRECT_URL ?? env.DATABASE_URL,
  dataDir: env.CARILLON_DATA_DIR,
  functionsDir: env.CARILLON_FUNCTIONS_DIR,
  adminToken: env.CARILLON_ADMIN_TOKEN,
  secret: env.CARILLON_SECRET,
}));

/** Settings of a service on this machine. Absent settings come from the data directory. */
export type LocalConfig = z.infer<typeof localSchema>;

/**
 * Reads the variables of `npm start` and the command line. All are optional. Throws a `ConfigError`
 * if they are invalid.
 */
export function readLocalConfig(env: Environment = process.env): LocalConfig {
  return check(localSchema, env);
}

/**
 * Returns warnings about unknown variables that begin with `CARILLON_`. Without a warning, nobody
 * would notice a misspelled name.
 */
export function environmentWarnings(env: Environment = process.env): string[] {
  const shapes = [schema.in.shape, functionsSchema.in.shape, localSchema.in.shape];
  return unknownVariables(
    env,
    shapes.flatMap((shape) => Object.keys(shape)),
  );
}

/** Maximum edit distance at which a known name is suggested. */
const maxEdits = 4;

/**
 * Returns warnings about unknown variables that begin with `CARILLON_`, with the most similar known
 * name. Never quotes values.
 */
function unknownVariables(env: Record<string, unknown>, known: readonly string[]): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('CARILLON_') && !known.includes(name))
    .sort()
    .map((name) => {
      const nearest = nearestOf(name, known);
      return `${name} is not a variable of Carillon${nearest === undefined ? '' : `: did you mean ${nearest}?`}`;
    });
}

function nearestOf(name: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let smallest = maxEdits + 1;
  for (const candidate of known) {
    const edits = editDistance(name.slice(0, 100), candidate);
    if (edits < smallest) [nearest, smallest] = [candidate, edits];
  }
  return nearest;
}

/**
 * Returns the edit distance of two texts: the number of insertions, deletions and replacements
 * (Levenshtein).
 */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** Returns the version in `package.json`. The compiled package contains a copy of this file. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}
