import { z } from 'zod';
import { remedyCodes } from '../../shared/domain/admin/remedies.ts';

/** Schemas by their name in `/openapi.json`. */
export const components = new Map<string, z.ZodType>();

/**
 * Names a schema. The document then contains it once, under `#/components/schemas/<name>`. Describe
 * a schema before you name it.
 */
export function component<S extends z.ZodType>(name: string, schema: S): S {
  if (components.has(name)) throw new Error(`two schemas are called ${name}`);
  components.set(name, schema);
  return schema;
}

export const captcha = component(
  'Captcha',
  z.strictObject({
    captcha_token: z.string().describe('Token of the captcha, for `POST /1.1/verifyCaptcha`.'),
    captcha_url: z.url().describe('Address of the image.'),
  }),
);

export const verifiedCaptcha = component(
  'VerifiedCaptcha',
  z.strictObject({
    validate_token: z
      .string()
      .describe('Proof of the solved captcha. Valid for 5 minutes and one call.'),
  }),
);

/** Time as ISO 8601 in UTC with milliseconds. */
export const timestamp = z.iso.datetime({ precision: 3 });

/** Number of things. */
export const count = z.int().min(0);

export const empty = component('Empty', z.strictObject({}).describe('An object without members.'));

/** Body of every refusal. */
export const errorReply = component(
  'Error',
  z
    .strictObject({
      code: z.int().describe('Error code.'),
      error: z.string().describe('Message for people.'),
    })
    .describe('Refusal of a call.'),
);

const permissions = z.strictObject({
  read: z.literal(true).optional().describe('May read the object.'),
  write: z.literal(true).optional().describe('May change and delete the object.'),
});

export const acl = component(
  'Acl',
  z
    .record(z.string(), permissions)
    .describe('Permissions by user id, `role:<name>`, or `*` for every caller.'),
);

/** Returns the schema of a list of objects. */
export const listOf = <S extends z.ZodType>(item: S) =>
  z.strictObject({
    results: z.array(item).describe('Objects of this page.'),
    count: count.optional().describe('Number of all matches, with `count=1`.'),
  });

/** Returns the schema of a page of a scan. */
export const pageOf = <S extends z.ZodType>(item: S) =>
  z.strictObject({
    results: z.array(item).describe('Objects of this page.'),
    cursor: z.string().nullable().describe('Cursor of the next page. Null after the last page.'),
  });

/** Returns the schema of a list of the admin API. */
export const resultsOf = <S extends z.ZodType>(item: S) =>
  z.strictObject({ results: z.array(item).describe('All entries.') });

/** Returns the schema of a page of an admin API list, by keyset. */
export const keysetPageOf = <S extends z.ZodType>(item: S) =>
  z.strictObject({
    results: z.array(item).describe('Entries of this page.'),
    next: z.string().nullable().describe('`cursor` of the next page. Null after the last page.'),
    count: count.optional().describe('Number of matches, with `count=1`. At most 10,000.'),
    countIsLeast: z.literal(true).optional().describe('There are more matches than `count`.'),
  });

/** Members of every stored object. */
export const stored = {
  objectId: z.string().describe('Id of the object.'),
  createdAt: timestamp.describe('Time at which the object was created.'),
  updatedAt: timestamp.describe('Time of the last change.'),
};

/**
 * Reply to an update: the id and time. With `fetchWhenSave=true`, also the new values of the
 * members that the call wrote.
 */
export const updated = { objectId: stored.objectId, updatedAt: stored.updatedAt };

const values =
  'Values in the reason. A nested reason or hint is an object with its own code and values.';

/** Meaning of a reason, as a code with values. */
export const meaning = component(
  'Meaning',
  z
    .strictObject({
      code: z.string().describe('Stable code. `other` if the reason is not in the catalogue.'),
      params: z.record(z.string(), z.unknown()).describe(values),
    })
    .describe('What a reason of a gateway or of the service means.'),
);

/** What an operator can do about a cause. */
export const remedy = z.strictObject({
  code: z.enum(remedyCodes).describe('Stable code of the remedy.'),
});

export const serverTime = component(
  'ServerTime',
  z.strictObject({
    __type: z.literal('Date').describe('Type of the value.'),
    iso: timestamp.describe('Time of the server.'),
  }),
);

const ttl = z.int().describe('Seconds for which the reply is valid.');

export const socketRoute = component(
  'SocketRoute',
  z.strictObject({
    groupId: z.string().describe('Always `g0`. For clients that expect a group of servers.'),
    groupUrl: z.url().describe('Address of the service.'),
    server: z.url().describe('Address of the WebSocket.'),
    secondary: z.url().describe('Second address for clients. Equal to `server`.'),
    ttl,
  }),
);

const host = (calls: string) => z.string().describe(`Host of the service, for ${calls}.`);

export const hosts = component(
  'Hosts',
  z.strictObject({
    ttl,
    api_server: host('objects, users and codes'),
    push_server: host('pushes and installations'),
    engine_server: host('cloud functions'),
    stats_server: host('statistics of older SDKs'),
    rtm_router_server: host('the router of the device channel'),
  }),
);

export const processStatus = component(
  'ProcessStatus',
  z.strictObject({ status: z.string().describe('`ok`, or `ready`.') }),
);

/** Reply that a gateway expects to its receipts. */
export const receiptReply = component(
  'ReceiptReply',
  z
    .strictObject({
      code: z.union([z.string(), z.int()]).describe('Code that means success to the gateway.'),
      message: z.string().describe('Text beside the code.'),
    })
    .partial()
    .describe('Reply that the gateway expects. Empty if it expects none.'),
);
