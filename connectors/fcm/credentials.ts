import { z } from 'zod';
import type { CredentialReport } from '../contract/connector.ts';
import {
  authEndpoint,
  baseUrl,
  common,
  inspectTrust,
  privateKeyText,
  proxyUrl,
  requiredText,
  secretText,
} from '../contract/credentials.ts';

/** Google's service account file as downloaded; unused members are dropped. */
const serviceAccount = z.object(
  {
    /** Part of a path: the project's id or number. */
    project_id: requiredText('project_id').regex(
      /^[a-z0-9][a-z0-9:.-]{1,127}$/,
      'project_id must be the id of a Google project',
    ),
    client_email: requiredText('client_email').min(3).max(320),
    private_key: privateKeyText('private_key', 'RSA'),
    private_key_id: secretText('private_key_id'),
    token_uri: baseUrl('token_uri'),
  },
  'serviceAccount must be the content of a service account file',
);

export const fcmCredentials = z.strictObject({
  serviceAccount,
  proxy: proxyUrl.optional(),
  ...common,
  ...authEndpoint,
});

export type FcmCredentials = z.infer<typeof fcmCredentials>;

/** Reports on the credentials; a service account does not say when it expires. */
export function inspectFcm({ ca }: FcmCredentials, nowMs: number): CredentialReport {
  return { kind: 'service account', ...inspectTrust(ca, nowMs) };
}
