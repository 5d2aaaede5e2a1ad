import { z } from 'zod';
import type { CredentialReport } from '../../contract/connector.ts';
import {
  authEndpoint,
  common,
  inspectTrust,
  privateKeyText,
  secretText,
} from '../../contract/credentials.ts';

/** Huawei's service account file as downloaded (protocol/huawei.md#service-account); unused members are dropped. */
const serviceAccount = z.object(
  {
    project_id: secretText('project_id'),
    key_id: secretText('key_id'),
    sub_account: secretText('sub_account'),
    private_key: privateKeyText('private_key', 'RSA'),
  },
  'serviceAccount must be the content of a service account file',
);

/**
 * Credentials of Huawei (protocol/admin-api.md#credentials-of-a-push-profile). `serviceAccount` serves devices of HarmonyOS 5
 * and newer; `callbackKey` and `callbackUser` are those of AppGallery Connect, for signed receipts.
 */
export const huaweiCredentials = z.strictObject({
  appId: secretText('appId'),
  appSecret: secretText('appSecret'),
  /** Host of the intent that a tap opens. */
  intentHost: z
    .string('intentHost must be a text')
    .regex(/^[A-Za-z0-9.-]{1,253}$/, 'intentHost must be a host name')
    .optional(),
  serviceAccount: serviceAccount.optional(),
  callbackKey: secretText('callbackKey').optional(),
  callbackUser: secretText('callbackUser').optional(),
  ...common,
  ...authEndpoint,
});

export type HuaweiCredentials = z.infer<typeof huaweiCredentials>;
export type HuaweiServiceAccount = z.infer<typeof serviceAccount>;

/** Reports on the credentials; neither secrets nor service accounts say when they expire. */
export function inspectHuawei({ ca, serviceAccount }: HuaweiCredentials, nowMs: number): CredentialReport {
  return { kind: serviceAccount ? 'secret and service account' : 'secret', ...inspectTrust(ca, nowMs) };
}
