import type * as Client from 'openid-client';
import { type Clock, hourMs } from '../../../../shared/clock.ts';
import type { OidcSettings } from '../../../../shared/config/config.ts';
import { valuesOf } from '../../../../shared/domain/admin/oidc-rights.ts';
import { Semaphore } from '../../../../shared/semaphore.ts';

/** Secrets of a login that has begun. */
export interface LoginSecrets {
  state: string;
  nonce: string;
  verifier: string;
}

/** Person whom the provider has authenticated. */
export interface Identity {
  subject: string;
  claims: Readonly<Record<string, unknown>>;
  /** Values of the claims that `OIDC_ROLES` maps. */
  values: string[];
}

/**
 * Why a login failed: `down`: the provider gave no usable answer. `denied`: it refused the login.
 * `invalid`: code, state, nonce or token are wrong, used or expired.
 */
type LoginFailure = 'down' | 'denied' | 'invalid';

/** A login that the provider did not complete. `cause` is for the log, without secrets. */
export class LoginFailed extends Error {
  readonly failure: LoginFailure;

  constructor(failure: LoginFailure, cause: unknown) {
    super(causeOf(cause));
    this.name = 'LoginFailed';
    this.failure = failure;
  }
}

/** Time for which the provider's configuration is used, and after which a failure is retried. */
const discoveryMs = hourMs;
const retryMs = 5000;
/** Timeout of one request to the provider. */
const timeoutSeconds = 10;
/** Requests to the provider at the same time, and calls that wait for one. */
const requests = { concurrency: 8, maxWaiting: 64, maxWaitMs: 10_000 };

/** Scopes that some providers need for the claims, if the provider lists them. */
const optionalScopes = ['profile', 'email', 'groups', 'roles'];

/**
 * Client of a provider of OpenID Connect: authorization code with PKCE, state and nonce. Only this
 * file imports openid-client. The provider is asked when a person logs in, so the service starts
 * while the provider is down.
 */
export class OidcProvider {
  readonly #settings: OidcSettings;
  readonly #clock: Clock;
  readonly #semaphore = new Semaphore(requests);
  #library: Promise<typeof Client> | undefined;
  #found: { config: Client.Configuration; untilMs: number } | undefined;
  #failed: { failure: LoginFailed; untilMs: number } | undefined;
  #pending: Promise<Client.Configuration> | undefined;

  constructor(settings: OidcSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  /** Creates the secrets of a login, and the address at which the person logs in. */
  async begin(redirectUri: string): Promise<{ secrets: LoginSecrets; url: string }> {
    const client = await this.#client();
    const config = await this.#configuration();
    const secrets = {
      state: client.randomState(),
      nonce: client.randomNonce(),
      verifier: client.randomPKCECodeVerifier(),
    };
    const listed = config.serverMetadata().scopes_supported;
    const scopes = optionalScopes.filter((scope) => listed?.includes(scope));
    const url = client.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      scope: ['openid', ...(listed ? scopes : ['profile', 'email'])].join(' '),
      state: secrets.state,
      nonce: secrets.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(secrets.verifier),
      code_challenge_method: 'S256',
    });
    return { secrets, url: url.href };
  }

  /**
   * Redeems the code in `currentUrl`, the address to which the provider sent the person back.
   * Checks state, nonce, issuer, audience, times and signature. Throws `LoginFailed`.
   */
  async complete(currentUrl: URL, secrets: LoginSecrets): Promise<Identity> {
    const client = await this.#client();
    const config = await this.#configuration();
    return this.#limited(async () => {
      const tokens = await client.authorizationCodeGrant(config, currentUrl, {
        pkceCodeVerifier: secrets.verifier,
        expectedState: secrets.state,
        expectedNonce: secrets.nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (!claims) throw new LoginFailed('invalid', 'no ID token');
      const { sub } = claims;
      const all = { ...(await this.#userInfo(client, config, tokens, claims)), ...claims };
      const subject = `${config.serverMetadata().issuer} ${sub}`;
      return { subject, claims: all, values: valuesOf(all) };
    });
  }

  /**
   * Returns the address at which the person also logs out at the provider. Returns undefined if the
   * provider has none, or is down.
   */
  async endSessionUrl(returnTo: string): Promise<string | undefined> {
    try {
      const client = await this.#client();
      const config = await this.#configuration();
      if (config.serverMetadata().end_session_endpoint === undefined) return undefined;
      return client.buildEndSessionUrl(config, { post_logout_redirect_uri: returnTo }).href;
    } catch {
      return undefined;
    }
  }

  /** Reads the provider's configuration. Throws `LoginFailed` if it is down. */
  async check(): Promise<void> {
    await this.#configuration();
  }

  /** Asks for claims that the ID token does not have: some providers give groups only here. */
  async #userInfo(
    client: typeof Client,
    config: Client.Configuration,
    tokens: { access_token: string },
    claims: { sub: string; [name: string]: unknown },
  ): Promise<Record<string, unknown>> {
    const isComplete = valuesOf(claims).length > 0 && typeof claims.name === 'string';
    if (isComplete || config.serverMetadata().userinfo_endpoint === undefined) return {};
    return client.fetchUserInfo(config, tokens.access_token, claims.sub);
  }

  #client(): Promise<typeof Client> {
    this.#library ??= import('openid-client');
    return this.#library;
  }

  /** Returns the cached configuration. All callers share one request. */
  async #configuration(): Promise<Client.Configuration> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#found && this.#found.untilMs > nowMs) return this.#found.config;
    if (this.#failed && this.#failed.untilMs > nowMs) throw this.#failed.failure;
    this.#pending ??= this.#discover().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  async #discover(): Promise<Client.Configuration> {
    try {
      const config = await this.#limited(() => this.#discoverNow());
      this.#found = { config, untilMs: this.#clock.monotonicMs() + discoveryMs };
      return config;
    } catch (error) {
      const failure = new LoginFailed('down', error);
      this.#failed = { failure, untilMs: this.#clock.monotonicMs() + retryMs };
      throw failure;
    }
  }

  async #discoverNow(): Promise<Client.Configuration> {
    const client = await this.#client();
    const { issuer, clientId, clientSecret } = this.#settings;
    const execute = issuer.startsWith('http://') ? [client.allowInsecureRequests] : [];
    const found = await client.discovery(new URL(issuer), clientId, clientSecret, undefined, {
      timeout: timeoutSeconds,
      execute,
    });
    // A provider that lists no methods takes basic authentication (OpenID Connect Discovery 1.0, 3).
    const methods = found.serverMetadata().token_endpoint_auth_methods_supported;
    const takesBasic = methods === undefined || methods.includes('client_secret_basic');
    const authentication = takesBasic
      ? client.ClientSecretBasic(clientSecret)
      : client.ClientSecretPost(clientSecret);
    const metadata = found.serverMetadata();
    const config = new client.Configuration(metadata, clientId, clientSecret, authentication);
    config.timeout = timeoutSeconds;
    for (const apply of execute) apply(config);
    // Checks the signature of ID tokens too, as the issuer may be reached without TLS.
    client.enableNonRepudiationChecks(config);
    return config;
  }

  /** Runs requests to the provider. Throws `LoginFailed`. */
  async #limited<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await this.#semaphore.run('', work);
    } catch (error) {
      throw error instanceof LoginFailed ? error : new LoginFailed(failureOf(error), error);
    }
  }
}

/** Errors of the library that mean a wrong answer of the person's browser, by code. */
const invalidCodes = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_INVALID_REQUEST',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_MISSING_SERVER_METADATA',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
]);

/** Answers of the token endpoint that mean a wrong, used or expired code (RFC 6749 5.2). */
const refusedGrants = new Set(['invalid_grant', 'invalid_request']);

function failureOf(error: unknown): LoginFailure {
  const { code, error: answer } = membersOf(error);
  if (code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR') return 'denied';
  if (code === 'OAUTH_RESPONSE_BODY_ERROR') return refusedGrants.has(answer) ? 'invalid' : 'down';
  return invalidCodes.has(code) ? 'invalid' : 'down';
}

/** Returns what a log line may contain: codes, but no token and no address. */
function causeOf(error: unknown): string {
  if (typeof error === 'string') return error;
  const { code, error: answer, cause } = membersOf(error);
  const codes = [code, answer, cause === undefined ? '' : causeOf(cause)];
  return [...new Set(codes)].filter((one) => /^[\w.-]{1,60}$/.test(one)).join(' ') || 'unknown';
}

function membersOf(error: unknown): { code: string; error: string; cause: unknown } {
  const text = (name: string): string =>
    error instanceof Error && name in error
      ? String(Object.getOwnPropertyDescriptor(error, name)?.value ?? '')
      : '';
  return {
    code: text('code'),
    error: text('error'),
    cause: error instanceof Error && error.cause instanceof Error ? error.cause : undefined,
  };
}
