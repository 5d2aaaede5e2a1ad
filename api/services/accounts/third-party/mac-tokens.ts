import { createHmac, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { identityOf } from '../../../../shared/domain/users/auth-data.ts';
import type { MacCheck, PlatformConfirmation } from '../../../../shared/domain/users/auth-platforms.ts';
import { type AnswerForm, codeText, type PlatformClients } from './platform-clients.ts';

/** MAC token to check, with the app's settings for its platform. */
export interface MacTokenRequest {
  platform: string;
  entry: JsonObject;
  settings: MacCheck;
  /** Epoch milliseconds, part of what is signed. */
  nowMs: number;
}

/** Hashes of MAC tokens, by their names in `mac_algorithm`. */
const hashOf = new Map([
  ['hmac-sha-1', 'sha1'],
  ['hmac-sha-256', 'sha256'],
]);

const account = z.object({
  success: z.literal(true),
  data: z.object({ openid: z.string(), unionid: z.string().optional() }),
});
const failure = z.object({ success: z.literal(false), data: z.looseObject({ error: z.unknown() }) });

/**
 * Answers of TapTap. A wrong client id, clock or signature of ours (`invalid_…`) says nothing about
 * the user.
 */
const form: AnswerForm<z.infer<typeof account>> = {
  reply: account,
  codeOf: (body) => {
    const found = failure.safeParse(body);
    return found.success ? (codeText(String(found.data.data.error)) ?? 'unnamed') : undefined;
  },
  refusals: new Set([
    'access_denied',
    'forbidden',
    'insufficient_scope',
    'invalid_grant',
    'invalid_token',
    'not_found',
    'unauthorized',
  ]),
};

/** At the first path, the code of a missing scope says only that the other path has to be asked. */
const firstForm = { ...form, refusals: form.refusals.difference(new Set(['insufficient_scope'])) };

/** Paths of the account, by the scope that the user granted: `basic_info`, `public_profile`. */
const paths = [
  ['/account/basic-info/v1', firstForm],
  ['/account/profile/v1', form],
] as const;

/**
 * Checks a MAC token of TapTap (`kid`, `mac_key`): a request that is signed with the key returns
 * the account that the token belongs to. Returns undefined when it is not the account of the entry.
 * Throws 503 when the platform says neither yes nor no (protocol/users.md#taptap).
 */
export async function checkMacToken(
  clients: PlatformClients,
  { platform, entry, settings, nowMs }: MacTokenRequest,
): Promise<PlatformConfirmation | undefined> {
  const { kid = entry.access_token, mac_key: key, mac_algorithm: algorithm = 'hmac-sha-1' } = entry;
  const hash = typeof algorithm === 'string' ? hashOf.get(algorithm) : undefined;
  if (!isHeaderText(kid) || typeof key !== 'string' || key === '' || !hash) return undefined;
  const { endpoint: baseUrl, ca, clientId } = settings;
  let [isRefused, unknown]: [boolean, Refusal | undefined] = [false, undefined];
  for (const [path, answerForm] of paths) {
    const target = `${path}?${new URLSearchParams({ client_id: clientId })}`;
    const authorization = signature({ baseUrl, target, kid, key, hash, nowMs });
    const request = { method: 'GET', path: target, headers: { authorization } } as const;
    const found = await clients.ask({ baseUrl, ca }, request, answerForm).catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
      return error;
    });
    if (found instanceof Refusal) unknown = found;
    else if (found) return accountOf(found, identityOf(platform, entry).uid);
    else isRefused = true;
  }
  if (unknown && !isRefused) throw unknown;
  return undefined;
}

const accountOf = ({ data }: z.infer<typeof account>, uid: string): PlatformConfirmation | undefined =>
  data.openid === uid ? { unionid: data.unionid } : undefined;

/** Tells whether a value may stand between the quotes of the header. */
const isHeaderText = (value: unknown): value is string =>
  typeof value === 'string' && /^[\x21\x23-\x5B\x5D-\x7E]{1,1024}$/.test(value);

interface SignedRequest {
  baseUrl: string;
  target: string;
  kid: string;
  key: string;
  hash: string;
  nowMs: number;
}

/** Returns the header `Authorization` of a GET (draft-ietf-oauth-v2-http-mac-01). */
function signature({ baseUrl, target, kid, key, hash, nowMs }: SignedRequest): string {
  const { protocol, hostname, port, pathname } = new URL(baseUrl);
  const [ts, nonce] = [String(Math.floor(nowMs / 1000)), randomBytes(12).toString('base64url')];
  const usualPort = protocol === 'https:' ? '443' : '80';
  const path = pathname.replace(/\/$/, '') + target;
  const text = `${[ts, nonce, 'GET', path, hostname, port || usualPort].join('\n')}\n\n`;
  const mac = createHmac(hash, key).update(text).digest('base64');
  return `MAC id="${kid}",ts="${ts}",nonce="${nonce}",mac="${mac}"`;
}
