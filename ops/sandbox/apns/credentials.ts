import { generateKeyPairSync, randomInt } from 'node:crypto';

/** Provider key: `privateKey` (PKCS#8) is for a push profile, `publicKey` (SPKI) for the gateway. */
export interface ApnsCredentials {
  teamId: string;
  keyId: string;
  privateKey: string;
  publicKey: string;
  topics: string[];
}

/** Creates a team with one token key in Apple's format (protocol/apns.md#provider-tokens). */
export function createApnsCredentials(topics: string[] = ['com.example.app']): ApnsCredentials {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    teamId: tenCharacters(),
    keyId: tenCharacters(),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    topics,
  };
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';

function tenCharacters(): string {
  return Array.from({ length: 10 }, () => alphabet.charAt(randomInt(alphabet.length))).join('');
}
