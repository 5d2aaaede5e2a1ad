/**
 * FCM HTTP v1 gateway on loopback with its token call: as strict as the original (protocol/fcm.md), with configurable
 * misbehaviour.
 */
import { anyToken, bearerOf, TokenIssuer } from '../http/access-tokens.ts';
import { formIn } from '../http/bodies.ts';
import type { GatewayRules, GatewayState } from '../http/gateway.ts';
import {
  type SandboxCall,
  type SandboxGateway,
  type SandboxOptions,
  type SandboxReply,
  startGateway,
} from '../http/server.ts';
import { AssertionVerifier, type ServiceAccount } from './account.ts';
import {
  badRequest,
  foreignToken,
  invalidGrant,
  malformedToken,
  noSuchProject,
  notFound,
  unauthenticated,
  unregistered,
} from './answers.ts';
import { violationOf } from './rules.ts';

export { createServiceAccount, type ServiceAccount } from './account.ts';

export interface FcmGatewayOptions extends SandboxOptions {
  account: ServiceAccount;
  /** Lifetime of an access token; default one hour. */
  tokenLifetimeMs?: number;
}

export interface FcmGateway extends SandboxGateway {
  /** Issuer of its access tokens. `deadTokens` are UNREGISTERED. */
  readonly tokenIssuer: TokenIssuer;
  /** Registration tokens of another project: SENDER_ID_MISMATCH. */
  readonly foreignTokens: Set<string>;
  /** How it takes installation ids; changes take effect at once. */
  readonly fids: FidRules;
}

/**
 * Whether the gateway knows the member `fid`, and takes an installation id as a `token`, as FCM
 * does by grace.
 */
export interface FidRules {
  isKnown: boolean;
  isTokenToo: boolean;
}

/** Format of FCM's tokens: an instance id, a colon, and a long rest. */
const tokenForm = /^[\w-]{8,64}:[\w-]{20,}$/;

/** Format of a Firebase installation id. */
const fidForm = /^[cdef][\w-]{21}$/;

/** Starts the gateway; resolves when it listens. */
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
      return { ...badRequest(violation), violation: `${violation.field}: ${violation.description}` };
    const { name, value: token } = targetIn(sent);
    const { isKnown, isTokenToo } = this.#state.fids;
    if (name === 'fid' && !isKnown)
      return badRequest({ field: 'message', description: 'Unknown name "fid" at \'message\'' });
    // FCM gives the same answer for a dead installation id and for a text that never was one.
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
  const message = typeof sent === 'object' && sent !== null && 'message' in sent ? sent.message : undefined;
  if (typeof message !== 'object' || message === null) return { name: 'token', value: '' };
  if ('fid' in message) return { name: 'fid', value: String(message.fid) };
  return { name: 'token', value: 'token' in message ? String(message.token) : '' };
}
