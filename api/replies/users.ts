import { z } from 'zod';
import { acl, stored, updated } from './common.ts';
import { component } from './component.ts';

const ofAccount = {
  username: z.string(),
  email: z.string().optional(),
  emailVerified: z.boolean().nullable().describe('Null: a mail was never sent.'),
  mobilePhoneNumber: z.string().optional().describe('E.164.'),
  mobilePhoneVerified: z.boolean(),
  authData: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Third-party accounts by platform; for the user itself and the master key.'),
  ACL: acl.optional().describe('With `returnACL=true`.'),
};

/** Members that are present with `keys` only where it names them. */
export const userPart = component(
  'UserPart',
  z
    .looseObject({ ...ofAccount, ...stored })
    .partial()
    .describe('User with members of the app’s own, or those of them that `keys` names.'),
);

const sessionToken = z.string().describe('Sent as `X-LC-Session`.');

export const signedInUser = component(
  'SignedInUser',
  z
    .looseObject({ ...ofAccount, ...stored, sessionToken })
    .describe('User with its session token, and members of the app’s own.'),
);

export const updatedUser = component(
  'UpdatedUser',
  z
    .looseObject(ofAccount)
    .partial()
    .extend({ ...updated, sessionToken: sessionToken.optional() })
    .describe('`sessionToken` is present where a new password ended the session.'),
);

/** Reply to a new password. */
export const renewedSession = component('RenewedSession', z.strictObject({ ...updated, sessionToken }));

/** Reply to the verification of a phone number. */
export const verifiedUser = component('VerifiedUser', z.strictObject(updated));
