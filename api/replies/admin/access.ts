import { z } from 'zod';
import { operatorRoles } from '../../../shared/domain/admin/operator.ts';
import { component, timestamp } from '../common.ts';

const who = {
  name: z
    .string()
    .describe(
      'Name of the token, or of the person at the provider of OpenID Connect. `admin` for CARILLON_ADMIN_TOKEN.',
    ),
  role: z.enum(operatorRoles),
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
    code: z.literal(409),
    error: z.string(),
    current: person.describe('Person whose session the browser has.'),
    asked: person.describe('Person that the link logs in. `replace` confirms this.'),
  }),
);

export const loginMethods = component(
  'LoginMethods',
  z.strictObject({
    token: z.literal(true),
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
    code: z.string(),
    url: z.string().describe('Link that logs in once.'),
    expiresAt: timestamp,
  }),
);

const tokenMembers = {
  id: z.string(),
  ...who,
  createdBy: z.string(),
  createdAt: timestamp,
  expiresAt: timestamp.nullable(),
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
    id: z.string(),
    ...who,
    address: z.string(),
    agent: z.string().describe('`User-Agent` of the login.'),
    createdAt: timestamp,
    seenAt: timestamp.describe('Last call, to the minute.'),
    expiresAt: timestamp,
  }),
);

const members = z.record(z.string(), z.unknown()).nullable();

export const auditEntry = component(
  'AuditEntry',
  z.strictObject({
    id: z.string(),
    at: timestamp,
    actor: z.strictObject({
      name: z.string(),
      role: z.enum(operatorRoles),
      token: z
        .string()
        .nullable()
        .describe('Id of the token or of the person. Null for CARILLON_ADMIN_TOKEN.'),
      address: z.string(),
    }),
    action: z.string().describe('`<noun>.<verb>`, such as `profile.put`.'),
    appId: z.string().nullable(),
    target: z.string().describe('Id or name of what was changed.'),
    before: members.describe('Changed members before the change. Secrets are `•••`.'),
    after: members,
    requestId: z.string().describe('`X-Request-Id` of the reply to the change.'),
  }),
);
