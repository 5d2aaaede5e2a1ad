/**
 * FCM HTTP v1 gateway on loopback, with its token call. It is as strict as the original
 * (protocol/fcm.md), and its misbehaviour can be configured.
 */

import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto';
import { z } from 'zod';
import {
  anyToken,
  bearerOf,
  formIn,
  type GatewayRules,
  type GatewayState,
  type SandboxCall,
  type SandboxGateway,
  type SandboxOptions,
  type SandboxReply,
  startGateway,
  TokenIssuer,
} from '../http/server.ts';
import { type Violation, violationOf } from './rules.ts';

/** Members of Google's service account file that a push profile needs. */
export interface ServiceAccount {
  project_id: string;
  client_email: string;
  private_key: string;
  private_key_id: string;
  token_uri: string;
}

/** Creates a service account in Google's format. */
export function createServiceAccount(projectId = 'carillon-sandbox'): ServiceAccount {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return {
    project_id: projectId,
    client_email: `push@${projectId}.iam.gserviceaccount.com`,
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    private_key_id: '0123456789abcdef0123456789abcdef01234567',
    token_uri: 'https://oauth2.googleapis.com/token',
  };
}

const scope = 'https://www.googleapis.com/auth/firebase.messaging';
const header = z.object({ alg: z.literal('RS256'), typ: z.literal('JWT'), kid: z.string() });
const claims = z.object({
  iss: z.string(),
  scope: z.string(),
  aud: z.string(),
  iat: z.int(),
  exp: z.int(),
});

/** Tolerated clock difference in seconds. */
const skewS = 60;
const maxS = 3600;

/**
 * Checks assertions of one service account like Google's token call (protocol/fcm.md#access-token).
 */
export class AssertionVerifier {
  readonly #account: ServiceAccount;
  readonly #publicKey: KeyObject;

  constructor(account: ServiceAccount) {
    this.#account = account;
    this.#publicKey = createPublicKey(account.private_key);
  }

  /** Returns the error of an assertion; undefined if it is valid. */
  check(assertion: string, nowMs: number): string | undefined {
    const [head = '', body = '', signature = '', ...more] = assertion.split('.');
    const parsed = {
      header: header.safeParse(decode(head)),
      claims: claims.safeParse(decode(body)),
    };
    if (more.length > 0 || !parsed.header.success || !parsed.claims.success) return 'Invalid JWT';
    const { client_email, private_key_id, token_uri } = this.#account;
    const signed = Buffer.from(`${head}.${body}`);
    if (parsed.header.data.kid !== private_key_id || parsed.claims.data.iss !== client_email)
      return 'Invalid grant: account not found';
    if (!verify('sha256', signed, this.#publicKey, Buffer.from(signature, 'base64url')))
      return 'Invalid JWT Signature.';
    const { aud, exp, iat } = parsed.claims.data;
    if (aud !== token_uri) return 'Invalid JWT: audience';
    if (!parsed.claims.data.scope.split(' ').includes(scope)) return 'Invalid OAuth scope';
    const nowS = nowMs / 1000;
    const isInTime = iat <= nowS + skewS && exp > nowS - skewS && exp - iat <= maxS && exp > iat;
    return isInTime ? undefined : 'Invalid JWT: iat and exp';
  }
}

function decode(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}

// Responses in Google's format (protocol/fcm.md#answers).

const types = 'type.googleapis.com/google';

/** Error of FCM. `errorCode` is FCM's own code, in addition to Google's `status`. */
export interface FcmError {
  code: number;
  message: string;
  status: string;
  errorCode?: string;
  details?: readonly Record<string, unknown>[];
}

export function errorBody({ code, message, status, errorCode, details = [] }: FcmError): object {
  const own =
    errorCode === undefined ? [] : [{ '@type': `${types}.firebase.fcm.v1.FcmError`, errorCode }];
  return { error: { code, message, status, details: [...own, ...details] } };
}

const reply = (error: FcmError): SandboxReply => ({ status: error.code, body: errorBody(error) });

export const badRequest = (violation: Violation): SandboxReply =>
  reply({
    code: 400,
    message: `Invalid value at '${violation.field}'`,
    status: 'INVALID_ARGUMENT',
    details: [{ '@type': `${types}.rpc.BadRequest`, fieldViolations: [violation] }],
  });

export const malformedToken: SandboxReply = reply({
  code: 400,
  message: 'The registration token is not a valid FCM registration token',
  status: 'INVALID_ARGUMENT',
  errorCode: 'INVALID_ARGUMENT',
  details: [
    {
      '@type': `${types}.rpc.BadRequest`,
      fieldViolations: [{ field: 'message.token', description: 'Invalid registration token' }],
    },
  ],
});

export const unregistered: SandboxReply = reply({
  code: 404,
  message: 'Requested entity was not found.',
  status: 'NOT_FOUND',
  errorCode: 'UNREGISTERED',
});

export const foreignToken: SandboxReply = reply({
  code: 403,
  message: 'SenderId mismatch',
  status: 'PERMISSION_DENIED',
  errorCode: 'SENDER_ID_MISMATCH',
});

export const noSuchProject: SandboxReply = reply({
  code: 403,
  message: "Permission 'cloudmessaging.messages.create' denied on resource",
  status: 'PERMISSION_DENIED',
});

export const unauthenticated: SandboxReply = reply({
  code: 401,
  message: 'Request had invalid authentication credentials. Expected OAuth 2 access token.',
  status: 'UNAUTHENTICATED',
  details: [
    { '@type': `${types}.rpc.ErrorInfo`, reason: 'ACCESS_TOKEN_EXPIRED', domain: 'googleapis.com' },
  ],
});

export const notFound: SandboxReply = { status: 404, body: '<html>404. That’s an error.</html>' };

/** Returns an error of the token call, in the form of OAuth 2 (RFC 6749 5.2). */
export const invalidGrant = (description: string): SandboxReply => ({
  status: 400,
  body: { error: 'invalid_grant', error_description: description },
});

export interface FcmGatewayOptions extends SandboxOptions {
  account: ServiceAccount;
  /** Lifetime of an access token; one hour by default. */
  tokenLifetimeMs?: number;
}

export interface FcmGateway extends SandboxGateway {
  /** Issuer of the access tokens. For `deadTokens` the response is UNREGISTERED. */
  readonly tokenIssuer: TokenIssuer;
  /** Registration tokens of another project. The response is SENDER_ID_MISMATCH. */
  readonly foreignTokens: Set<string>;
  /** How the gateway handles installation ids. Changes take effect at once. */
  readonly fids: FidRules;
}

/**
 * `isKnown`: the gateway knows the member `fid`. `isTokenToo`: it also accepts an installation id
 * as `token`, as FCM still does.
 */
export interface FidRules {
  isKnown: boolean;
  isTokenToo: boolean;
}

/** Form of FCM's tokens: an instance id, a colon, and a long text. */
const tokenForm = /^[\w-]{8,64}:[\w-]{20,}$/;

/** Form of a Firebase installation id. */
const fidForm = /^[cdef][\w-]{21}$/;

/** Starts the gateway. Resolves when it listens. */
export async function startFcmGateway(options: FcmGatewayOptions): Promise<FcmGateway> {
  const foreignTokens = new Set<string>();
  const fids: FidRules = { isKnown: true, isTokenToo: true };
  const tokenIssuers: TokenIssuer[] = [];
  const gateway = await startGateway(options, (state) => {
    const tokenIssuer = new TokenIssuer(state.nowMs, options.tokenLifetimeMs);
    tokenIssuers.push(tokenIssuer);
    return new FcmRules(options.account, { ...state, tokenIssuer, foreignTokens, fids });
  });
  const [tokenIssuer] = tokenIssuers;
  if (!tokenIssuer) throw new Error('the gateway was started without its rules');
  return Object.assign(gateway, { tokenIssuer, foreignTokens, fids });
}

interface FcmState extends GatewayState {
  tokenIssuer: TokenIssuer;
  foreignTokens: ReadonlySet<string>;
  fids: FidRules;
}

class FcmRules implements GatewayRules {
  readonly successes;
  readonly #verifier: AssertionVerifier;
  readonly #sendPath: string;
  readonly #tokenPath: string;
  readonly #state: FcmState;
  #messages = 0;

  constructor(account: ServiceAccount, state: FcmState) {
    this.#verifier = new AssertionVerifier(account);
    this.#sendPath = `/v1/projects/${account.project_id}/messages:send`;
    this.#tokenPath = new URL(account.token_uri).pathname;
    this.#state = state;
    const name = `projects/${account.project_id}/messages/0:1500415314455276%31bd1c9631bd1c96`;
    this.successes = [
      { path: this.#sendPath, body: { name } },
      { path: this.#tokenPath, body: anyToken, isPreparation: true } as const,
    ];
  }

  targetsOf(call: SandboxCall): { tokens: readonly string[]; isTokenCall?: boolean } {
    if (call.path === this.#tokenPath) return { tokens: [], isTokenCall: true };
    const token = /"(?:token|fid)"\s*:\s*"([^"\\]+)"/.exec(call.body.toString('utf8'))?.[1];
    return { tokens: token === undefined ? [] : [token] };
  }

  handle(call: SandboxCall): SandboxReply {
    if (call.method !== 'POST') return notFound;
    if (call.path === this.#tokenPath) return this.#grant(call);
    if (!/^\/v1\/projects\/[^/]+\/messages:send$/.test(call.path)) return notFound;
    if (this.#state.tokenIssuer.check(bearerOf(call.headers.authorization)) !== 'valid')
      return unauthenticated;
    if (call.path !== this.#sendPath) return noSuchProject;
    if (!/^application\/json\b/.test(call.headers['content-type'] ?? ''))
      return {
        ...badRequest({ field: 'message', description: 'not JSON' }),
        violation: 'a body that is not JSON',
      };
    return this.#send(parse(call.body));
  }

  #grant(call: SandboxCall): SandboxReply {
    const form = formIn(call);
    if (!/^application\/x-www-form-urlencoded\b/.test(call.headers['content-type'] ?? ''))
      return { ...invalidGrant('not a form'), violation: 'a token call whose body is not a form' };
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer')
      return { status: 400, body: { error: 'unsupported_grant_type' } };
    const problem = this.#verifier.check(form.get('assertion') ?? '', this.#state.nowMs());
    if (problem !== undefined) return invalidGrant(problem);
    const { value, expiresIn } = this.#state.tokenIssuer.issue();
    return {
      status: 200,
      body: { access_token: value, expires_in: expiresIn, token_type: 'Bearer' },
    };
  }

  #send(sent: unknown): SandboxReply {
    const violation = violationOf(sent);
    if (violation)
      return {
        ...badRequest(violation),
        violation: `${violation.field}: ${violation.description}`,
      };
    const { name, value: token } = targetIn(sent);
    const { isKnown, isTokenToo } = this.#state.fids;
    if (name === 'fid' && !isKnown)
      return badRequest({ field: 'message', description: 'Unknown name "fid" at \'message\'' });
    // FCM gives the same response for a dead installation id and for a text that was never an id.
    if (name === 'fid' && !fidForm.test(token)) return unregistered;
    if (name === 'token' && !tokenForm.test(token) && !(isTokenToo && fidForm.test(token)))
      return malformedToken;
    if (this.#state.deadTokens.has(token)) return unregistered;
    if (this.#state.foreignTokens.has(token)) return foreignToken;
    this.#messages += 1;
    const id = `0:${this.#messages}%31bd1c9631bd1c96`;
    const project = this.#sendPath.split('/')[3];
    return { status: 200, body: { name: `projects/${project}/messages/${id}` }, accepted: [token] };
  }
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Returns the target of a message. */
function targetIn(sent: unknown): { name: 'token' | 'fid'; value: string } {
  const message =
    typeof sent === 'object' && sent !== null && 'message' in sent ? sent.message : undefined;
  if (typeof message !== 'object' || message === null) return { name: 'token', value: '' };
  if ('fid' in message) return { name: 'fid', value: String(message.fid) };
  return { name: 'token', value: 'token' in message ? String(message.token) : '' };
}
