import { z } from 'zod';
import type { CredentialReport } from '../../contract/connector.ts';
import { authEndpoint, common, inspectTrust, secretText } from '../../contract/credentials.ts';

/**
 * protocol/admin-api.md#credentials-of-a-push-profile. Among the optional members is `badgeClass`, the entry activity, without which a device
 * shows no badge (protocol/honor.md#message).
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

/** What an operator may want to know; secrets name no end of their own. */
export function inspectHonor({ ca }: HonorCredentials, nowMs: number): CredentialReport {
  return { kind: 'secret', ...inspectTrust(ca, nowMs) };
}
