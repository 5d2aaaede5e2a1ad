import { generateKeyPairSync, randomBytes, randomInt } from 'node:crypto';

/** Credentials of app and project, as AppGallery Connect issues them, and the public key for the gateway. */
export interface HuaweiApp {
  appId: string;
  appSecret: string;
  serviceAccount: { project_id: string; key_id: string; sub_account: string; private_key: string };
  /** SPKI PEM of `serviceAccount`. */
  publicKey: string;
}

/** Creates an app (protocol/huawei.md#access-tokens). Its secret has characters that a form must escape. */
export function createHuaweiApp(): HuaweiApp {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return {
    appId: String(randomInt(100_000_000, 110_000_000)),
    appSecret: `${randomBytes(30).toString('base64')}+/=&`,
    serviceAccount: {
      project_id: String(randomInt(1_000_000_000, 2_000_000_000)),
      key_id: randomBytes(16).toString('hex'),
      sub_account: String(randomInt(100_000_000, 110_000_000)),
      private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    },
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}
