/**
 * FCM HTTP v1 gateway on loopback with its token call: as strict as the original (protocol/fcm.md), with configurable
 * misbehaviour.
 */
import { bearerOf, TokenIssuer } from '../http/access-tokens.ts';
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
}

/** Format of FCM's tokens: an instance id, a colon, and a long rest. */
const tokenForm = /^[\w-]{8,64}:[\w-]{20,}$/;

/** Starts the gateway; resolves when it listens. */
export async function startFcmGateway(options: FcmGatewayOptions): Promise<FcmGateway> {
  const foreignTokens = new Set<string>();
  const tokenIssuers: TokenIssuer[] = [];
  const gateway = await startGateway(options, (state) => {
    const tokenIssuer = new TokenIssuer(state.nowMs, options.tokenLifetimeMs);
    tokenIssuers.push(tokenIssuer);
    return new FcmRules(options.account, { ...state, tokenIssuer, foreignTokens });
  });
  const [tokenIssuer] = tokenIssuers;
  if (!tokenIssuer) throw new Error('the gateway was started without its rules');
  return Object.assign(gateway, { tokenIssuer, foreignTokens });
}

interface FcmState extends GatewayState {
  tokenIssuer: TokenIssuer;
  foreignTokens: ReadonlySet<string>;
}

class FcmRules implements GatewayRules {
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
  }

  targetsOf(call: SandboxCall): { tokens: readonly string[]; isTokenCall?: boolean } {
    if (call.path === this.#tokenPath) return { tokens: [], isTokenCall: true };
    const token = /"token"\s*:\s*"([^"\\]+)"/.exec(call.body.toString('utf8'))?.[1];
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
    const token = tokenIn(sent);
    if (!tokenForm.test(token)) return malformedToken;
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

function tokenIn(sent: unknown): string {
  const message = typeof sent === 'object' && sent !== null && 'message' in sent ? sent.message : undefined;
  const token =
    typeof message === 'object' && message !== null && 'token' in message ? message.token : undefined;
  return typeof token === 'string' ? token : '';
}
