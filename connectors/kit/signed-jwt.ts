import { createPrivateKey } from 'node:crypto';

/** Signing key of a service account: an RSA key in PEM, and its id at the gateway. */
export interface SigningKey {
  algorithm: 'PS256' | 'RS256';
  keyId: string;
  privateKey: string;
}

/** Tolerated clock error: gateways refuse an assertion from the future. */
export const skewS = 30;

/** Signs a JWT that is valid for `lifetimeS` seconds from slightly before `nowS` (epoch seconds). */
export async function signJwt(
  { algorithm, keyId, privateKey }: SigningKey,
  {
    nowS,
    lifetimeS,
    ...claims
  }: { nowS: number; lifetimeS: number; iss: string; aud: string; scope?: string },
): Promise<string> {
  // Loaded on demand: only one thread signs, and every thread would hold the module in memory.
  const { importPKCS8, SignJWT } = await import('jose');
  // Converts keys in other formats to PKCS#8.
  const pem = createPrivateKey(privateKey).export({ type: 'pkcs8', format: 'pem' }).toString();
  return new SignJWT({ ...claims, iat: nowS - skewS, exp: nowS - skewS + lifetimeS })
    .setProtectedHeader({ alg: algorithm, typ: 'JWT', kid: keyId })
    .sign(await importPKCS8(pem, algorithm));
}
