import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto';
import { z } from 'zod';

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
const claims = z.object({ iss: z.string(), scope: z.string(), aud: z.string(), iat: z.int(), exp: z.int() });

/** Tolerated clock difference. */
const skewS = 60;
const longestS = 3600;

/** Checks assertions of one service account as Google's token call does (protocol/fcm.md#access-token). */
export class AssertionVerifier {
  readonly #account: ServiceAccount;
  readonly #publicKey: KeyObject;

  constructor(account: ServiceAccount) {
    this.#account = account;
    this.#publicKey = createPublicKey(account.private_key);
  }

  /** Returns the error of an assertion; undefined when it is valid. */
  check(assertion: string, nowMs: number): string | undefined {
    const [head = '', body = '', signature = '', ...more] = assertion.split('.');
    const parsed = { header: header.safeParse(decode(head)), claims: claims.safeParse(decode(body)) };
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
    const isInTime = iat <= nowS + skewS && exp > nowS - skewS && exp - iat <= longestS && exp > iat;
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
