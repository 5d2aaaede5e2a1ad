import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { z } from 'zod';

/** Provider key that the gateway accepts. */
export interface ApnsKey {
  teamId: string;
  keyId: string;
  /** Public key in PEM (SPKI). */
  publicKey: string;
  topics: readonly string[];
}

export interface Refusal {
  status: number;
  reason: string;
}

const header = z.object({ alg: z.literal('ES256'), kid: z.string() });
const claims = z.object({ iss: z.string(), iat: z.int() });

/** Provider token with a valid signature. */
export interface ValidToken {
  authorization: string;
  key: ApnsKey;
  issuedAtS: number;
}

type Checked = { ok: true; token: ValidToken } | { ok: false };

const missing: Refusal = { status: 403, reason: 'MissingProviderToken' };
const invalid: Refusal = { status: 403, reason: 'InvalidProviderToken' };
const expired: Refusal = { status: 403, reason: 'ExpiredProviderToken' };
/** Tolerated clock difference in seconds. A token from further in the future is refused. */
const skewS = 60;
const maxAgeS = 3600;

/**
 * Verifies provider tokens (protocol/apns.md#provider-tokens). The signature of each token is
 * checked once.
 */
export class TokenVerifier {
  readonly #keys: Map<string, { key: ApnsKey; publicKey: KeyObject }>;
  readonly #checked = new Map<string, Checked>();

  constructor(keys: readonly ApnsKey[]) {
    this.#keys = new Map(
      keys.map((key) => [key.keyId, { key, publicKey: createPublicKey(key.publicKey) }]),
    );
  }

  /** Returns the token of an `authorization` header, or its refusal. */
  check(authorization: string | undefined, nowMs: number): ValidToken | Refusal {
    if (authorization === undefined) return missing;
    let checked = this.#checked.get(authorization);
    if (checked === undefined) {
      checked = this.#verify(authorization);
      if (this.#checked.size > 1000) this.#checked.clear();
      this.#checked.set(authorization, checked);
    }
    if (!checked.ok) return invalid;
    const ageS = nowMs / 1000 - checked.token.issuedAtS;
    if (ageS > maxAgeS) return expired;
    return ageS < -skewS ? invalid : checked.token;
  }

  #verify(authorization: string): Checked {
    const parts = /^bearer ([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(authorization);
    if (!parts) return { ok: false };
    const [, head = '', body = '', signature = ''] = parts;
    const parsedHead = header.safeParse(decode(head));
    const parsedBody = claims.safeParse(decode(body));
    if (!parsedHead.success || !parsedBody.success) return { ok: false };
    const known = this.#keys.get(parsedHead.data.kid);
    if (known?.key.teamId !== parsedBody.data.iss) return { ok: false };
    const isSigned = verify(
      'sha256',
      Buffer.from(`${head}.${body}`),
      { key: known.publicKey, dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature, 'base64url'),
    );
    if (!isSigned) return { ok: false };
    return { ok: true, token: { authorization, key: known.key, issuedAtS: parsedBody.data.iat } };
  }
}

function decode(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}
