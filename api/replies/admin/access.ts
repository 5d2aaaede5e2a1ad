import { z } from 'zod';
import { operatorRoles } from '../../../shared/domain/admin/operator.ts';
import { component, timestamp } from '../common.ts';

const who = {
  name: z
    .string()
    .describe(
      'Name of the token, or of the person at the provider of OpenID Connect. `admin` for CARILLON_ADMIN_TOKEN.',
    ),
  role: z.enum(operatorRoles).describe('Role of the caller.'),
  apps: z
    .array(z.string())
    .nullable()
    .describe('Ids of the apps that it may use. Null means all apps.'),
};

export const currentOperator = component(
  'CurrentOperator',
  z.strictObject({
    ...who,
    expiresAt: timestamp
      .nullable()
      .describe('End of the session if no further call is made. Null for a token.'),
    csrf: z.null().describe('No call needs a token against cross-site requests.'),
  }),
);

const person = z.strictObject({ name: who.name, role: who.role });

export const otherPerson = component(
  'OtherPerson',
  z.strictObject({
    code: z.literal(409).describe('Error code.'),
    error: z.string().describe('Message for people.'),
    current: person.describe('Person whose session the browser has.'),
    asked: person.describe('Person that the link logs in. `replace` confirms this.'),
  }),
);

export const loginMethods = component(
  'LoginMethods',
  z.strictObject({
    token: z.literal(true).describe('People can log in with a token.'),
    oidc: z.string().nullable().describe('Host of the issuer of OpenID Connect, if there is one.'),
  }),
);

export const endedSession = component(
  'EndedSession',
  z.strictObject({
    endSessionUrl: z
      .string()
      .optional()
      .describe('Address at which the person also logs out at the provider of OpenID Connect.'),
  }),
);

export const loginLink = component(
  'LoginLink',
  z.strictObject({
    code: z.string().describe('Code for `POST /console/api/session`. Valid once.'),
    url: z.string().describe('Link that logs in once.'),
    expiresAt: timestamp.describe('Time at which it expires.'),
  }),
);

const tokenMembers = {
  id: z.string().describe('Id of the token.'),
  ...who,
  createdBy: z.string().describe('Name of the caller that created it.'),
  createdAt: timestamp.describe('Time of the creation.'),
  expiresAt: timestamp.nullable().describe('Time at which it expires.'),
  usedAt: timestamp.nullable().describe('Last use, to the minute.'),
  isOidc: z.boolean().describe('True for a person who logs in by OpenID Connect and has no token.'),
  mail: z.string().nullable().describe('Mail address of such a person.'),
};

export const consoleToken = component('ConsoleToken', z.strictObject(tokenMembers));

export const createdConsoleToken = component(
  'CreatedConsoleToken',
  z.strictObject({
    ...tokenMembers,
    token: z.string().describe('The secret. No other reply contains it.'),
  }),
);

export const consoleSession = component(
  'ConsoleSession',
  z.strictObject({
    id: z.string().describe('Id of the session.'),
    ...who,
    address: z.string().describe('Network address of the caller.'),
    agent: z.string().describe('`User-Agent` of the login.'),
    createdAt: timestamp.describe('Time of the creation.'),
    seenAt: timestamp.describe('Last call, to the minute.'),
    expiresAt: timestamp.describe('Time at which it expires.'),
  }),
);

const members = z.record(z.string(), z.unknown()).nullable();

export const auditEntry = component(
  'AuditEntry',
  z.strictObject({
    id: z.string().describe('Id of the entry.'),
    at: timestamp.describe('Time of the change.'),
    actor: z
      .strictObject({
        name: z.string().describe('Name of the caller.'),
        role: z.enum(operatorRoles).describe('Role of the caller.'),
        token: z
          .string()
          .nullable()
          .describe('Id of the token or of the person. Null for CARILLON_ADMIN_TOKEN.'),
        address: z.string().describe('Network address of the caller.'),
      })
      .describe('Caller that made the change.'),
    action: z.string().describe('`<noun>.<verb>`, such as `profile.put`.'),
    appId: z.string().nullable().describe('Id of the app. Null for a change of the service.'),
    target: z.string().describe('Id or name of what was changed.'),
    before: members.describe('Changed members before the change. Secrets are `•••`.'),
    after: members.describe('Changed members after the change. Secrets are `•••`.'),
    requestId: z.string().describe('`X-Request-Id` of the reply to the change.'),
  }),
);
