import { randomBytes } from 'node:crypto';
import { sealContexts } from '../apps/seal-contexts.ts';
import type { Sealer } from './auth-data.ts';

/** Derives and encrypts session tokens (`Vault` in shared/crypto.ts). */
export interface TokenSource extends Sealer {
  /** Ids of the keys, first key first. An id has 8 hexadecimal digits. */
  readonly keyIds: readonly [string, ...string[]];
  derivedBy(context: string): string[];
}

const tokenLength = 25;
const tokenCount = 36n ** BigInt(tokenLength);
/** Length of a nonce. A longer value is an encrypted token. */
const nonceBytes = 16;
const keyIdBytes = 4;

/**
 * Creates the nonce of a session: the id of the first key and 96 random bits. The id tells which
 * key derived the token, so no computation per user is needed. Nonces of older versions are
 * completely random.
 */
export const newSessionNonce = ({ keyIds: [first] }: TokenSource): Buffer =>
  Buffer.concat([Buffer.from(first, 'hex'), randomBytes(nonceBytes - keyIdBytes)]);

/** Encrypts a token. The result is stored instead of the session's nonce. */
export const sealedSession = (
  source: TokenSource,
  appId: string,
  objectId: string,
  token: string,
): Buffer => source.seal(token, sealContexts.session(appId, objectId));

/**
 * Returns the tokens of a stored nonce, one per key, first key first. If an encrypted token is
 * stored instead, returns only this token, and throws `SealError` if no key decrypts it.
 */
export function sessionTokens(
  source: TokenSource,
  appId: string,
  objectId: string,
  nonce: Buffer,
): string[] {
  if (nonce.length !== nonceBytes)
    return [String(source.open(nonce, sealContexts.session(appId, objectId)))];
  return source.derivedBy(`session ${appId} ${objectId} ${nonce.toString('hex')}`).map((secret) => {
    const number = BigInt(`0x${Buffer.from(secret, 'base64url').toString('hex')}`) % tokenCount;
    return number.toString(36).padStart(tokenLength, '0');
  });
}
