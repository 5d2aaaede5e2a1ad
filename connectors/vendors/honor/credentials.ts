import { z } from 'zod';
import type { CredentialReport } from '../../contract/connector.ts';
import { authEndpoint, common, inspectTrust, secretText } from '../../contract/credentials.ts';

/**
 * Credentials of Honor (protocol/admin-api.md#credentials-of-a-push-profile). Without `badgeClass`, the entry activity, a
 * device shows no badge (protocol/honor.md#message).
 */
export const honorCredentials = z.strictObject({
  appId: secretText('appId'),
  clientId: secretText('clientId'),
  clientSecret: secretText('clientSecret'),
  badgeClass: z
    .string('badgeClass must be a text')
    .regex(/^[A-Za-z][\w$.]{0,255}$/, 'badgeClass must be the full name of an activity')
    .optional(),
  ...common,
  ...authEndpoint,
});

export type HonorCredentials = z.infer<typeof honorCredentials>;

/** Reports on the credentials; secrets do not say when they expire. */
export function inspectHonor({ ca }: HonorCredentials, nowMs: number): CredentialReport {
  return { kind: 'secret', ...inspectTrust(ca, nowMs) };
}
