import { randomBytes } from 'node:crypto';
import { sealContexts } from '../apps/seal-contexts.ts';
import type { Sealer } from './auth-data.ts';

/** What derives and encrypts session tokens (`Vault` of shared/crypto.ts). */
export interface TokenSource extends Sealer {
  /** Ids of the keys, 8 hexadecimal digits each, the first key first. */
  readonly keyIds: readonly [string, ...string[]];
  derivedBy(context: string): string[];
}

const tokenLength = 25;
const tokenCount = 36n ** BigInt(tokenLength);
/** Length of a nonce; a longer value is an encrypted token. */
const nonceBytes = 16;
const keyIdBytes = 4;

/**
 * Creates the nonce of a session: the id of the first key, and 96 random bits. The id says which
 * key the token was derived with, without a computation per user; nonces of versions before it are
 * random throughout.
 */
export const newSessionNonce = ({ keyIds: [first] }: TokenSource): Buffer =>
  Buffer.concat([Buffer.from(first, 'hex'), randomBytes(nonceBytes - keyIdBytes)]);

/** Encrypts a token, to be stored in place of the nonce of a session. */
export const sealedSession = (
  source: TokenSource,
  appId: string,
  objectId: string,
  token: string,
): Buffer => source.seal(token, sealContexts.session(appId, objectId));

/**
 * Returns the tokens of a stored nonce, one per key, the first key's first; or the one token that
 * is encrypted in place of it. Throws `SealError` when no key decrypts that.
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
