/** Answers in Google's format (protocol/fcm.md#answers). */
import type { SandboxReply } from '../http/server.ts';
import type { Violation } from './rules.ts';

const types = 'type.googleapis.com/google';

/** `errorCode`: FCM's own code beside Google's `status`. */
export interface FcmError {
  code: number;
  message: string;
  status: string;
  errorCode?: string;
  details?: readonly Record<string, unknown>[];
}

export function errorBody({ code, message, status, errorCode, details = [] }: FcmError): object {
  const own = errorCode === undefined ? [] : [{ '@type': `${types}.firebase.fcm.v1.FcmError`, errorCode }];
  return { error: { code, message, status, details: [...own, ...details] } };
}

const reply = (error: FcmError): SandboxReply => ({ status: error.code, body: errorBody(error) });

export const badRequest = (violation: Violation): SandboxReply =>
  reply({
    code: 400,
    message: `Invalid value at '${violation.field}'`,
    status: 'INVALID_ARGUMENT',
    details: [{ '@type': `${types}.rpc.BadRequest`, fieldViolations: [violation] }],
  });

export const malformedToken: SandboxReply = reply({
  code: 400,
  message: 'The registration token is not a valid FCM registration token',
  status: 'INVALID_ARGUMENT',
  errorCode: 'INVALID_ARGUMENT',
  details: [
    {
      '@type': `${types}.rpc.BadRequest`,
      fieldViolations: [{ field: 'message.token', description: 'Invalid registration token' }],
    },
  ],
});

export const unregistered: SandboxReply = reply({
  code: 404,
  message: 'Requested entity was not found.',
  status: 'NOT_FOUND',
  errorCode: 'UNREGISTERED',
});

export const foreignToken: SandboxReply = reply({
  code: 403,
  message: 'SenderId mismatch',
  status: 'PERMISSION_DENIED',
  errorCode: 'SENDER_ID_MISMATCH',
});

export const noSuchProject: SandboxReply = reply({
  code: 403,
  message: "Permission 'cloudmessaging.messages.create' denied on resource",
  status: 'PERMISSION_DENIED',
});

export const unauthenticated: SandboxReply = reply({
  code: 401,
  message: 'Request had invalid authentication credentials. Expected OAuth 2 access token.',
  status: 'UNAUTHENTICATED',
  details: [{ '@type': `${types}.rpc.ErrorInfo`, reason: 'ACCESS_TOKEN_EXPIRED', domain: 'googleapis.com' }],
});

export const notFound: SandboxReply = { status: 404, body: '<html>404. That’s an error.</html>' };

/** The token call speaks OAuth 2 (RFC 6749 5.2). */
export const invalidGrant = (description: string): SandboxReply => ({
  status: 400,
  body: { error: 'invalid_grant', error_description: description },
});
