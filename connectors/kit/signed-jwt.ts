import { createPrivateKey } from 'node:crypto';

/** What a service account signs with: PEM of an RSA key, and the id the gateway knows it by. */
export interface SigningKey {
  algorithm: 'PS256' | 'RS256';
  keyId: string;
  privateKey: string;
}

/** An assertion from the future is refused: this much may our clock be ahead. */
export const skewS = 30;

/** A JWT that is good for `livesS` seconds from a little before now (epoch seconds). */
export async function signJwt(
  { algorithm, keyId, privateKey }: SigningKey,
  { nowS, livesS, ...claims }: { nowS: number; livesS: number; iss: string; aud: string; scope?: string },
): Promise<string> {
  // Loaded when the first is signed: one thread of all signs, and all would hold it.
  const { importPKCS8, SignJWT } = await import('jose');
  // The gateways' files hold PKCS#8; another form of the key is brought into it.
  const pem = createPrivateKey(privateKey).export({ type: 'pkcs8', format: 'pem' }).toString();
  return new SignJWT({ ...claims, iat: nowS - skewS, exp: nowS - skewS + livesS })
    .setProtectedHeader({ alg: algorithm, typ: 'JWT', kid: keyId })
    .sign(await importPKCS8(pem, algorithm));
}
